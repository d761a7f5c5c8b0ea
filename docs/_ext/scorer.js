// How the search ranks pages: models and releases first, what they were read from last.
// It takes the place of the whole Scorer of Sphinx's searchtools.js, whose scores of matches stay.

// Sphinx gives a match in a heading 15 points or so, one in the text 5. What each gets beside them,
// by the first pattern that the name of its page is of:
const HEADING = 15;
const RANKS = [
  { pages: /^(changes|recipes|runs|scaling)\/index$/, heading: 5, text: 0 },
  { pages: /^(models|performance|systems)\/index$/, heading: 0, text: 0 },
  { pages: /^performance\/(archive|audit)$/, heading: 0, text: 0 },
  { pages: /^models\//, heading: 4, text: 4 },
  { pages: /^(performance\/(audit\/|changelog$)|runs|sources)/, heading: -3, text: -3 },
  { pages: /^(performance|systems)\//, heading: 3, text: 3 },
  { pages: /^(changes|recipes|scaling)\//, heading: 1, text: 1 },
  { pages: /^(explanation|how-to|reference|tutorial)\//, heading: -1, text: -1 },
];

var Scorer = {
  score: ([name, , , , score]) => {
    const rank = RANKS.find(({ pages }) => pages.test(name));
    return score + (rank?.[score < HEADING ? "text" : "heading"] ?? 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
