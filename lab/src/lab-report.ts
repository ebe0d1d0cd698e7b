import { machineText } from 'sluicegate-commands/load/load-result.js'
import type { Report, ReportSection } from 'sluicegate-commands/report/report.js'
import type { ScenarioResult } from './run-scenario.js'
import { SLOW_DECISION_MS } from './service-node.js'

/** The results as a report: a table of all scenarios, and a plot of each. */
export function labReport(results: readonly ScenarioResult[], date: Date): Report {
  return {
    title: 'Sluicegate lab',
    subtitle: `${machineText()}, ${date.toISOString()}`,
    sections: [summary(results), shards(results), violations(results), ...results.map(plot)],
  }
}

function summary(results: readonly ScenarioResult[]): ReportSection {
  return {
    heading: 'Scenarios',
    text: [
      'Over-admission is that of the worst key, counted from the recorded answers: by how many tokens some interval is surely over burst + rate x length.',
      `Latency is that of the load, from when a request was due. Slow decisions took longer than ${SLOW_DECISION_MS} ms within a node.`,
    ],
    table: {
      columns: [
        ...['scenario', 'invariants', 'answers/s', '50 % ms', '99 % ms', 'slow decisions', 'allowed', 'denied', 'errors'],
        ...['calls/token', 'budget used', 'over', 'over allowed', 'outage tokens', 'seed'],
      ],
      rows: results.map((each) => [
        each.name,
        each.violations.length === 0 ? 'hold' : 'VIOLATED',
        each.perSecond,
        each.p50Ms,
        each.p99Ms,
        each.slowDecisions,
        each.allowed,
        each.denied,
        each.errors,
        each.callsPerToken,
        each.budgetUse === null ? '' : `${Math.round(each.budgetUse * 1_000) / 10} %`,
        each.over,
        each.allowedOver,
        each.outageTokens,
        String(each.seed),
      ]),
    },
  }
}

function shards(results: readonly ScenarioResult[]): ReportSection {
  return {
    heading: 'Redis, by shard',
    table: {
      columns: ['scenario', 'processor % of each shard', 'calls of each shard', 'hot shard'],
      rows: results.map(({ name, shards, hotShard }) => [
        name,
        shards.map(({ cpuPercent }) => cpuPercent).join(', '),
        shards.map(({ calls }) => calls).join(', '),
        hotShard === null ? '' : `${hotShard.timesMean} times the mean${hotShard.key === '' ? '' : `, by ${hotShard.key}`}`,
      ]),
    },
  }
}

function violations(results: readonly ScenarioResult[]): ReportSection {
  const texts = results.flatMap(({ name, violations }) => violations.map((violation) => `${name}: ${violation}`))
  return { heading: 'Violations', text: texts.length === 0 ? ['None.'] : texts }
}

function plot({ name, plot: { xs, admitted, budget }, scraped, marks }: ScenarioResult): ReportSection {
  const scrapedAt = (x: number): number | null => scraped.findLast(([second]) => second <= x)?.[1] ?? null
  return {
    heading: `Rate against budget: ${name}`,
    plot: {
      x: 'number',
      xLabel: 'seconds from the start',
      yLabel: 'per second',
      xs,
      series: [
        { label: 'admitted', ys: admitted, kind: 'area' },
        ...(budget === null ? [] : [{ label: 'budget', ys: xs.map(() => budget), kind: 'dashed' as const }]),
        { label: 'decisions, by Prometheus', ys: xs.map(scrapedAt) },
      ],
      marks,
    },
  }
}
