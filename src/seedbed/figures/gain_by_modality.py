"""Post-content gain by modality: one narrow panel per modality, one row per algorithm."""

from matplotlib.figure import Figure

from seedbed.figures import layout, rows
from seedbed.figures.style import WIDTH, marks, new_figure, style
from seedbed.figures.tables import Tables
from seedbed.metrics.interview import MODALITIES
from seedbed.study import Study

_GAP = 0.1


def gain_by_modality(tables: Tables, study: Study) -> Figure:
    """Mean gain in mastery after an item, with its interval; panels of an environment share the x-axis."""
    with style():
        drawn = marks(study)
        wrapped = {environment: rows.names(study, environment) for environment in study.environments}
        left = rows.name_gutter([name for names in wrapped.values() for name in names])
        width = (WIDTH - left - 0.15) / len(MODALITIES) - _GAP
        heads = {
            environment: layout.title_height(study.title_of(environment), WIDTH - 0.2)
            for environment in study.environments
        }
        note = layout.wrap(_note(tables, study), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        total = 0.15 + layout.text_height(note, layout.NOTE_SIZE)
        total += sum(heads[e] + 0.22 + rows.height(wrapped[e]) + 0.6 for e in study.environments)
        figure, top = new_figure(total), 0.06
        for environment in study.environments:
            text = layout.wrap(study.title_of(environment), WIDTH - 0.2, 9, "bold")
            layout.write(figure, 0.1, top, text, 9, weight="bold")
            top += heads[environment]
            height, panels = rows.height(wrapped[environment]), []
            for column, modality in enumerate(MODALITIES):
                place = left + column * (width + _GAP)
                axes = layout.panel(figure, place, top + 0.22, width, height)
                axes.set_title(modality, size=8, weight="normal", pad=4)
                rows.prepare(axes, study, environment, wrapped[environment], with_names=column == 0)
                metric = f"post_content_gain_{modality}"
                rows.intervals(axes, tables, study, environment, metric, drawn, bars=False)
                panels.append(axes)
            _share(panels)
            middle = left + (len(MODALITIES) * (width + _GAP) - _GAP) / 2
            label = "gain in mastery after an item (mastery of one learning outcome, 0 to 1)"
            place = middle - layout.text_width(label, 8) / 2
            layout.write(figure, max(place, 0.1), top + 0.22 + height + 0.27, label, 8)
            top += 0.22 + height + 0.6
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _share(panels: list) -> None:
    """Give all panels with values the x-limits that hold them all, and two or three ticks."""
    filled = [axes for axes in panels if axes.spines["bottom"].get_visible()]
    if not filled:
        return
    low = min(0.0, *(axes.get_xlim()[0] for axes in filled))
    high = max(axes.get_xlim()[1] for axes in filled)
    for axes in filled:
        axes.set_xlim(low, high)
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter("{x:g}")


def _note(tables: Tables, study: Study) -> str:
    n = len(study.seeds)
    if n == 1:
        return "Markers: one training seed; no interval can be given."
    return (
        f"Markers: mean over n = {n} training seeds with {tables.percent} t intervals. "
        f"Gain falls as mastery rises: a faster teacher may show less."
    )
