"""Audits of environments: which of evaluation's promises an environment lets Seedbed keep."""
