import type { Report, ReportSection } from '../report/report.js'
import { PEAK_PERCENTILES } from './peak-rates.js'
import type { ReplayResult } from './replay.js'

/** The result as a report: what would have been denied, when and to whom, and which limits the log suggests. */
export function replayReport(result: ReplayResult, logs: readonly string[]): Report {
  const { lines, firstTime, lastTime, candidates } = result
  return {
    title: 'Sluicegate replay',
    subtitle: `${logs.join(', ')}: ${lines.toLocaleString('en')} lines from ${firstTime ?? 'no time'} to ${lastTime ?? 'no time'}`,
    sections: [
      requestsOverTime(result),
      policies(result),
      ...candidates
        .flatMap(({ config, policies }) => policies.map((policy) => deniedKeys(config, policy)))
        .filter(({ table }) => table !== undefined),
      ...(candidates.length > 1 ? [agreement(result)] : []),
      suggestedLimits(result),
      notes(result),
    ],
  }
}

function requestsOverTime({ timeline, candidates }: ReplayResult): ReportSection {
  const { startMs, pointMs, requests, denied } = timeline
  const perSecond = (counts: readonly number[]): number[] => counts.map((count) => (count * 1_000) / pointMs)
  return {
    heading: 'Requests and denials per second',
    plot: {
      x: 'time',
      xLabel: 'time',
      yLabel: 'per second',
      xs: requests.map((_, i) => (startMs + i * pointMs) / 1_000),
      series: [
        { label: 'requests', ys: perSecond(requests), kind: 'area' },
        ...denied.map((counts, i) => ({ label: `denied by ${candidates[i]?.config ?? ''}`, ys: perSecond(counts) })),
      ],
    },
  }
}

function policies({ candidates }: ReplayResult): ReportSection {
  return {
    heading: 'Policies',
    table: {
      columns: ['config', 'policy', 'limit', 'key', 'requests', 'denied', 'denied %', 'keys denied', 'first denial', 'longest wait s'],
      rows: candidates.flatMap(({ config, policies }) =>
        policies.map((each) => [
          config,
          each.policy,
          each.description,
          each.match === undefined ? each.key : `${each.key} for ${each.match}`,
          each.requests,
          each.denied,
          percent(each.denied, each.requests),
          each.deniedKeysAreMore ? `more than ${each.deniedKeys}` : each.deniedKeys,
          each.firstDenial ?? 'none',
          Math.ceil(each.longestRetryAfterMs / 100) / 10,
        ]),
      ),
    },
  }
}

function deniedKeys(config: string, { policy, topDenied }: ReplayResult['candidates'][number]['policies'][number]): ReportSection {
  return {
    heading: `Most denied keys: ${policy} (${config})`,
    ...(topDenied.length > 0 && {
      table: {
        columns: ['key', 'denials', 'at most too high by'],
        rows: topDenied.map(({ key, count, overcount }) => [key, count, overcount]),
      },
    }),
  }
}

function agreement({ agreement }: ReplayResult): ReportSection {
  return {
    heading: 'Where the configurations differ',
    table: {
      columns: ['denied by', 'requests'],
      rows: agreement.map(({ deniedBy, requests }) => [deniedBy.length === 0 ? 'none' : deniedBy.join(' and '), requests]),
    },
  }
}

function suggestedLimits({ peaks }: ReplayResult): ReportSection {
  const { key, sampledKeys, chance, rows } = peaks
  const sample =
    chance === 1
      ? `all ${sampledKeys.toLocaleString('en')} keys`
      : `a sample of ${sampledKeys.toLocaleString('en')} keys, 1 of ${1 / chance}`
  return {
    heading: 'Limits that the log suggests',
    text: [
      `The highest count of a key ${key} in aligned windows, over ${sample}. A fixed window with the limit in the column "99 %" would never have denied 99 % of the keys.`,
    ],
    table: {
      columns: ['window', ...PEAK_PERCENTILES.map((percentile) => (percentile === 100 ? 'all keys' : `${percentile} %`))],
      rows: rows.map(({ window, peaks }) => [window, ...peaks]),
    },
  }
}

function notes({ unreadableLines, lines, lateLines, latestByMs, candidates, format }: ReplayResult): ReportSection {
  const withoutKey = candidates.flatMap(({ policies }) => policies.filter((policy) => policy.withoutKey > 0))
  const evicted = candidates.flatMap(({ policies }) => policies.filter((policy) => policy.evictions > 0))
  return {
    heading: 'What to know about these figures',
    text: [
      `Format: ${format}. ${unreadableLines.toLocaleString('en')} of ${lines.toLocaleString('en')} lines could not be read and are left out.`,
      lateLines > 0
        ? `${lateLines.toLocaleString('en')} lines have an earlier time than a line above, by ${latestByMs / 1_000} s at most; they count at the later time.`
        : 'The times of the log never step back.',
      ...withoutKey.map(
        ({ policy, key, withoutKey }) => `${policy}: ${withoutKey.toLocaleString('en')} requests without ${key} are not limited.`,
      ),
      ...evicted.map(
        ({ policy, evictions }) =>
          `${policy}: ${evictions.toLocaleString('en')} keys were forgotten for want of room, so it denies too little; set max-keys.`,
      ),
      'A log holds what a server answered. Clients that are denied may try again or stay away; the replay cannot know.',
    ],
  }
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 10_000) / 100
}
