import { LOG, PACKED } from './forms.js'
import type { Judgement } from './judge.js'
import type { AtRate, Day, SlidingWindowFindings } from './sliding-window.js'
import { percent, type StudyTable } from './study-table.js'

/** The findings as tables, by the names of their places in the page. */
export function slidingWindowTables(findings: SlidingWindowFindings): StudyTable[] {
  const { days, poisson, frontLoaded, attacks } = findings
  return [
    trafficTable(days),
    countedTable(days),
    differencesTable(days),
    limitedTable(days),
    ratesTable('poisson', 'One source with random requests (Poisson), 100 in 60 s', poisson),
    ratesTable('front-loaded', 'One source with requests in the first tenth of each window only, 100 in 60 s', frontLoaded),
    {
      name: 'attacks',
      title: 'The most that the adversary got out of one window, in any position',
      head: ['limit', '', 'most', 'most / limit'],
      rows: formsMerged(attacks.map(({ form, limit, most }) => [count(limit), form, count(most), (most / limit).toFixed(4)])),
    },
  ]
}

function trafficTable(days: readonly Day[]): StudyTable {
  return {
    name: 'traffic',
    title: 'The two days',
    head: ['', 'requests', 'sources', 'of them seen'],
    rows: days.map(({ name, requests, sources, seen }) => [name, count(requests), count(sources), count(seen)]),
  }
}

function countedTable(days: readonly Day[]): StudyTable {
  return {
    name: 'counted',
    title: 'Every request counted, as in the published analysis',
    head: ['limit a minute', '', 'over it', 'wrongly allowed', 'wrongly denied', 'wrong'],
    rows: days.flatMap(({ counted }) =>
      formsMerged(
        counted
          .filter(isShown)
          .map((judged) => [count(judged.limit), judged.form, percent(judged.over, judged.requests), ...wrong(judged)]),
      ),
    ),
  }
}

function differencesTable(days: readonly Day[]): StudyTable {
  return {
    name: 'differences',
    title: 'Mean difference between the real count and the approximated one',
    head: ['', '', 'over all requests', 'where the real count is 10 or more', 'sum of differences / sum of counts'],
    rows: days.flatMap(({ name, differences }) =>
      formsMerged(
        differences.map(({ form, ofAll, ofTenOrMore, weighted }) => [
          name,
          form,
          percent(ofAll, 1),
          percent(ofTenOrMore, 1),
          percent(weighted, 1),
        ]),
      ),
    ),
  }
}

function limitedTable(days: readonly Day[]): StudyTable {
  return {
    name: 'limited',
    title: 'A limiter, which counts what it lets through: each decision beside what its own history really held',
    head: ['limit a minute', '', 'passed', 'passed / by the log', 'wrongly allowed', 'wrongly denied', 'wrong', 'most in a window'],
    rows: days.flatMap(({ limited }) =>
      formsMerged(
        limited
          .filter(({ form }) => form !== LOG.name)
          .map((judged) => [
            count(judged.limit),
            judged.form,
            percent(judged.allowed, judged.requests),
            percent(judged.allowed, logOf(limited, judged).allowed),
            ...wrong(judged),
            `${(judged.mostAdmitted / judged.limit).toFixed(2)} ×`,
          ]),
      ),
    ),
  }
}

/** Of the forms of a window the packed one: the wide one decides alike, compact counters differ little. All are in the results. */
const isShown = ({ form }: { readonly form: string }): boolean => form === PACKED.name

/** The limit of the tables over rates. */
const SHOWN_LIMIT = 100

/** The packed form at one limit, which the others differ little from: those stand in the results. */
function ratesTable(name: string, title: string, judgements: readonly AtRate[]): StudyTable {
  return {
    name,
    title,
    head: ['rate / limit', 'passed', 'passed by the log', 'wrongly allowed', 'wrongly denied', 'most in a window'],
    rows: judgements
      .filter(({ form, limit }) => form === PACKED.name && limit === SHOWN_LIMIT)
      .map((judged) => [
        String(judged.rate),
        percent(judged.allowed, judged.requests),
        percent(logOf(atSameRate(judgements, judged), judged).allowed, judged.requests),
        percent(judged.wronglyAllowed, judged.requests),
        percent(judged.wronglyDenied, judged.requests),
        `${(judged.mostAdmitted / judged.limit).toFixed(2)} ×`,
      ]),
  }
}

/** Rows that differ in nothing but the form, in their second cell, as one; in the order of their first cells. */
function formsMerged(rows: readonly (readonly string[])[]): string[][] {
  const firsts = [...new Set(rows.map(([first = '']) => first))]
  return firsts.flatMap((first) => {
    const merged = new Map<string, string[]>()
    for (const [, form = '', ...rest] of rows.filter((row) => row[0] === first)) {
      const same = merged.get(rest.join())
      merged.set(rest.join(), [first, same === undefined ? form : `${same[1]}, ${form}`, ...rest])
    }
    return [...merged.values()]
  })
}

function atSameRate(judgements: readonly AtRate[], { rate }: AtRate): readonly AtRate[] {
  return judgements.filter((judged) => judged.rate === rate)
}

function logOf(judgements: readonly Judgement[], { limit }: Judgement): Judgement {
  return judgements.find((judged) => judged.form === LOG.name && judged.limit === limit) as Judgement
}

function wrong({ wronglyAllowed, wronglyDenied, requests }: Judgement): string[] {
  return [percent(wronglyAllowed, requests), percent(wronglyDenied, requests), percent(wronglyAllowed + wronglyDenied, requests)]
}

function count(value: number): string {
  return value.toLocaleString('en')
}
