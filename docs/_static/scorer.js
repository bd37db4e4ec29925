// How the search orders its results: Sphinx's own points, times a weight of the page.
const WEIGHTS = [
  [/^how_to\/troubleshooting/, 1.6],
  [/^(how_to|tutorials|which_algorithm)/, 1.2],
  [/^(changelog|reproductions|architecture|contributing|new_algorithm|security)/, 0.7],
];
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score * (WEIGHTS.find(([pattern]) => pattern.test(page)) ?? [null, 1])[1],
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
