"""``withstand doctor``: asks one request after another over a path; ``withstand.doctor`` judges what was heard."""
