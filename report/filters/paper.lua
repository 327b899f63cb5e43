-- Layout that Markdown cannot say. The same source becomes LaTeX, typst and HTML; what differs is here.
local html = FORMAT:match("html") ~= nil
local latex = FORMAT:match("latex") ~= nil
local typst = FORMAT:match("typst") ~= nil

local names = {} -- id of a table or figure -> "Table 2"
local seen = {} -- trace ids that the page has as anchors already

local function number_all(document)
  local counts = { Table = 0, Figure = 0 }
  document:walk({
    traverse = "topdown",
    Table = function(element)
      counts.Table = counts.Table + 1
      names[element.identifier] = "Table " .. counts.Table
    end,
    Figure = function(element)
      counts.Figure = counts.Figure + 1
      names[element.identifier] = "Figure " .. counts.Figure
    end,
  })
end

-- An empty link to a table or figure shows its number.
local function refer(link)
  local name = names[link.target:match("^#(.*)") or ""]
  if #link.content == 0 and name then
    link.content = { pandoc.Str((name:gsub(" ", "\u{a0}"))) }
    return link
  end
end

-- A traced number: an anchor with its id in HTML, bare text elsewhere.
local function traced(span)
  local id = span.attributes.trace
  if id then
    if not html then
      return span.content
    end
    span.attributes = { title = id }
    span.classes = { "traced" }
    if not seen[id] then
      seen[id] = true
      span.identifier = id
    end
    return span
  end
  if span.classes:includes("below") and latex then
    return { pandoc.RawInline("latex", "{\\scriptsize "), pandoc.Span(span.content), pandoc.RawInline("latex", "}") }
  elseif span.classes:includes("below") and typst then
    return { pandoc.RawInline("typst", "#below["), pandoc.Span(span.content), pandoc.RawInline("typst", "]") }
  end
end

local function line_break(raw)
  if raw.format == "html" and raw.text == "<br>" then
    return pandoc.LineBreak()
  end
end

local function is_heading(row)
  local first = row.cells[1] and row.cells[1].contents[1]
  local inline = first and first.content and first.content[1]
  return inline and inline.t == "Span" and inline.classes:includes("group")
end

-- Rows that head a group: a rule above, and the whole width.
local function grouped(table)
  local bodies, rows, head = pandoc.List(), pandoc.List(), pandoc.List()
  local function close()
    if #rows > 0 or #head > 0 then
      bodies:insert({ attr = pandoc.Attr(), body = rows, head = head, row_head_columns = 0 })
    end
    rows, head = pandoc.List(), pandoc.List()
  end
  local first = true
  for _, row in ipairs(table.bodies[1].body) do
    if is_heading(row) and latex then
      local text = row.cells[1].contents[1].content
      local rule = first and "" or "\\midrule\n"
      local open = rule .. "\\multicolumn{" .. #row.cells .. "}{@{}l@{}}{"
      text:insert(1, pandoc.RawInline("latex", open))
      text:insert(pandoc.RawInline("latex", "}\\\\* %")) -- no page ends here
      row.cells[1].contents[1].content = text
      rows:insert(row)
    elseif is_heading(row) then
      row.cells[1].col_span = #row.cells
      row.cells = { row.cells[1] }
      if typst then
        row.cells[1].attr.attributes["typst:stroke"] = "(top: 0.5pt)"
        rows:insert(row)
      else
        close()
        head:insert(row)
      end
    else
      rows:insert(row)
    end
    first = false
  end
  close()
  return bodies
end

local function arranged(table)
  local shares, total = {}, 0
  for share in (table.attributes.widths or ""):gmatch("%d+") do
    shares[#shares + 1] = tonumber(share)
    total = total + tonumber(share)
  end
  table.attributes.widths = nil
  if latex and total > 0 then
    for index, spec in ipairs(table.colspecs) do
      table.colspecs[index] = { spec[1], shares[index] / total }
    end
  end
  if #table.bodies > 0 then
    table.bodies = grouped(table)
  end
  if html then
    local label = names[table.identifier]
    local caption = table.caption.long[1]
    if caption then
      caption.content:insert(1, pandoc.Space())
      caption.content:insert(1, pandoc.Strong({ pandoc.Str(label .. ".") }))
    end
    return pandoc.Div({ table }, pandoc.Attr("", { "wide" }))
  end
  return table
end

local function captioned(figure)
  if html and figure.caption.long[1] then
    figure.caption.long[1].content:insert(1, pandoc.Space())
    figure.caption.long[1].content:insert(1, pandoc.Strong({ pandoc.Str(names[figure.identifier] .. ".") }))
  end
  return figure
end

-- Figures are drawn as SVG for the page and as PDF for print.
local function image(element)
  if not html then
    element.src = element.src:gsub("%.svg$", ".pdf")
  end
  return element
end

local function small(div)
  if div.classes:includes("notes") and latex then
    table.insert(div.content, 1, pandoc.RawBlock("latex", "{\\footnotesize\\noindent"))
    table.insert(div.content, pandoc.RawBlock("latex", "\\par}\\medskip"))
    return div.content
  elseif div.classes:includes("notes") and typst then
    table.insert(div.content, 1, pandoc.RawBlock("typst", "#notes["))
    table.insert(div.content, pandoc.RawBlock("typst", "]"))
    return div.content
  end
end

-- typst would make an ellipsis of three points, and a minus sign of a hyphen before a digit.
local function literal(element)
  if not (element.text:find("...", 1, true) or element.text:find("%-%d")) then
    return nil
  end
  local parts, from = pandoc.List(), 1
  local function keep(text)
    if text ~= "" then
      parts:insert(pandoc.Str(text))
    end
  end
  for at, sign in element.text:gmatch("()([%.%-])") do
    if sign == "." or element.text:find("^%d", at + 1) then
      keep(element.text:sub(from, at - 1))
      parts:insert(pandoc.RawInline("typst", "\\" .. sign))
      from = at + 1
    end
  end
  keep(element.text:sub(from))
  return parts
end

function Pandoc(document)
  number_all(document)
  document = document:walk({ RawInline = line_break, Link = refer, Image = image, Div = small })
  document = document:walk({ Table = arranged, Figure = captioned })
  document = document:walk({ Span = traced })
  return typst and document:walk({ Str = literal }) or document
end
