import { once } from 'node:events'
import { createWriteStream, type WriteStream, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { finished } from 'node:stream/promises'
import { readConfig } from 'sluicegate-config/read-config.js'
import { didYouMean } from 'sluicegate-config/spelling.js'
import type { Report, ReportSection } from '../report/report.js'
import { htmlReport, textReport } from '../report/text-report.js'
import { checkOutput, UsageError } from '../terminal/usage-error.js'
import { LineTemplate } from './log-reader.js'
import { type LogSource, openLog } from './log-source.js'
import { PEAK_PERCENTILES } from './peak-rates.js'
import { type CandidateConfig, Replay, type ReplayResult } from './replay.js'
import { KeyTemplate, RequestFilter, type RequestRule, subnetOf } from './request-rule.js'

const DEFAULT_KEY = '$remote_addr'
const PROGRESS_MS = 500

/** Options of the command line, as written. */
export interface ReplayFlags {
  readonly config: readonly string[]
  readonly format?: string | undefined
  /** `TEMPLATE` or `POLICY=TEMPLATE`. */
  readonly key?: readonly string[]
  /** `POLICY=METHOD /path*`. */
  readonly match?: readonly string[]
  /** `TEMPLATE`. */
  readonly time?: string | undefined
  readonly ipv6Subnet?: string | undefined
  readonly html?: string | undefined
  readonly denials?: string | undefined
  readonly json?: boolean
}

/**
 * Replays the logs and prints the report.
 *
 * @throws {UsageError} for options that do not fit the configuration, or a log that cannot be read.
 */
export async function runReplay(logs: readonly string[], flags: ReplayFlags): Promise<void> {
  checkOutput('--html', flags.html)
  checkOutput('--denials', flags.denials)
  const { candidates, key } = readCandidates(flags)
  const denials = flags.denials === undefined ? undefined : createWriteStream(flags.denials)
  const failed = denials && new Promise<never>((_, reject) => denials.once('error', reject))
  const replay = new Replay({
    candidates,
    key,
    format: flags.format,
    time: flags.time === undefined ? undefined : new LineTemplate('--time', flags.time, '$time_local'),
    ...(denials && { onDenial: (denial) => void denials.write(`${JSON.stringify(denial)}\n`) }),
  })
  try {
    const done = replayLogs(replay, logs, denials)
    await (failed === undefined ? done : Promise.race([done, failed]))
    const result = replay.result()
    if (result.lines === 0) throw new UsageError(`${logs.join(', ')}: no lines`, 1)
    if (result.lines === result.unreadableLines)
      throw new UsageError(`${logs.join(', ')}: none of ${result.lines} lines could be read; give the format with --format`, 1)
    checkKeys(result)
    const report = replayReport(
      result,
      logs.map((log) => basename(log)),
    )
    if (flags.html !== undefined) writeFileSync(flags.html, htmlReport(report))
    process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : textReport(report))
  } catch (error) {
    if (error instanceof UsageError || (error as NodeJS.ErrnoException).code === undefined) throw error
    throw new UsageError((error as Error).message, 1)
  } finally {
    replay.close()
  }
}

/** A policy that found no key in any request has shown nothing. @throws {UsageError} */
function checkKeys({ candidates }: ReplayResult): void {
  for (const { policy, key, requests, withoutKey } of candidates.flatMap(({ policies }) => policies)) {
    if (requests > 0 || withoutKey === 0) continue
    throw new UsageError(`no line has a key for ${policy}: ${key} is empty in ${withoutKey} requests; name another with --key`, 1)
  }
}

async function replayLogs(replay: Replay, logs: readonly string[], denials: WriteStream | undefined): Promise<void> {
  const startMs = performance.now()
  for (const log of logs) {
    const source = await openLog(log)
    const progress = process.stderr.isTTY ? setInterval(() => showProgress(source, replay, startMs), PROGRESS_MS) : undefined
    try {
      for await (const chunk of source.stream) {
        replay.write(chunk as Buffer)
        // A list of denials may be written more slowly than the log is read.
        if (denials?.writableNeedDrain) await once(denials, 'drain')
      }
      replay.endOfFile()
    } finally {
      clearInterval(progress)
      if (progress !== undefined) process.stderr.write('\r\x1b[K')
    }
  }
  if (denials === undefined) return
  denials.end()
  // Rejects when the last of it could not be written.
  await finished(denials)
}

function showProgress(source: LogSource, replay: Replay, startMs: number): void {
  const seconds = (performance.now() - startMs) / 1_000
  const share = source.bytes ? `${Math.floor((source.bytesRead() / source.bytes) * 100)} % of ` : ''
  const lines = replay.lines.toLocaleString('en')
  process.stderr.write(
    `\r\x1b[K${share}${source.name}: ${lines} lines, ${Math.round(replay.lines / seconds).toLocaleString('en')} a second`,
  )
}

function readCandidates(flags: ReplayFlags): { candidates: CandidateConfig[]; key: KeyTemplate } {
  const configs = flags.config.map((file) => ({ file, policies: readConfig(file).policies }))
  const policies = new Set(configs.flatMap(({ policies }) => policies.map(({ policy }) => policy.name)))
  const subnet = subnetOf(flags.ipv6Subnet)
  const keys = new Map<string | undefined, KeyTemplate>()
  for (const text of flags.key ?? []) {
    const [policy, template] = splitByPolicy(text, policies)
    keys.set(policy, new KeyTemplate(template, subnet))
  }
  const filters = new Map<string, RequestFilter>()
  for (const text of flags.match ?? []) {
    const [policy, filter] = splitByPolicy(text, policies)
    if (policy === undefined) throw new UsageError(`--match: "${text}" names no policy; write ${[...policies][0]}=${text}`)
    filters.set(policy, new RequestFilter(filter))
  }
  const key = keys.get(undefined) ?? new KeyTemplate(DEFAULT_KEY, subnet)
  const ruleOf = (policy: string): RequestRule => ({ key: keys.get(policy) ?? key, filter: filters.get(policy) })
  const names = namesOf(flags.config)
  return { candidates: configs.map(({ policies }, i) => ({ name: names[i] as string, policies, ruleOf })), key }
}

/** `POLICY=REST`, or the rest alone. */
function splitByPolicy(text: string, policies: ReadonlySet<string>): [policy: string | undefined, rest: string] {
  const [, policy, rest] = /^([^=$/ ]+)=(.*)$/.exec(text) ?? []
  if (policy === undefined || rest === undefined) return [undefined, text]
  if (!policies.has(policy))
    throw new UsageError(`there is no policy "${policy}"${didYouMean(policy, [...policies]) || ` in ${[...policies].join(', ')}`}`)
  return [policy, rest]
}

/** File names alone where they differ. */
function namesOf(files: readonly string[]): string[] {
  const names = files.map((file) => basename(file).replace(/\.ya?ml$/, ''))
  return new Set(names).size === names.length ? names : [...files]
}

/** The result as a report: what would have been denied, when and to whom, and which limits the log suggests. */
function replayReport(result: ReplayResult, logs: readonly string[]): Report {
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

function notes({ unreadableLines, lines, lateLines, latestByMs, wildLines, clockSteps, candidates, format }: ReplayResult): ReportSection {
  const withoutKey = candidates.flatMap(({ policies }) => policies.filter((policy) => policy.withoutKey > 0))
  const evicted = candidates.flatMap(({ policies }) => policies.filter((policy) => policy.evictions > 0))
  return {
    heading: 'What to know about these figures',
    text: [
      `Format: ${format}. ${unreadableLines.toLocaleString('en')} of ${lines.toLocaleString('en')} lines could not be read and are left out.`,
      lateLines > 0
        ? `${lateLines.toLocaleString('en')} lines have an earlier time than a line above, by ${latestByMs / 1_000} s at most; they count at the later time.`
        : 'The times of the log never step back.',
      ...(wildLines > 0
        ? [`${wildLines.toLocaleString('en')} lines have a time far from that of the lines around them; they count at the time of those.`]
        : []),
      ...(clockSteps > 0
        ? [
            `The clock of the log was set back ${clockSteps} times, or a file begins before the end of the one above; time goes on from there.`,
          ]
        : []),
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
