import { once } from 'node:events'
import { createWriteStream, type WriteStream, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { finished } from 'node:stream/promises'
import { readConfig } from 'sluicegate-config/read-config.js'
import { didYouMean } from 'sluicegate-config/spelling.js'
import { htmlReport } from '../report/html-report.js'
import { textReport } from '../report/text-report.js'
import { checkOutput } from '../terminal/file-text.js'
import { UsageError } from '../terminal/usage-error.js'
import { LineTemplate } from './line-template.js'
import { type LogSource, openLog } from './log-source.js'
import { type CandidateConfig, Replay, type ReplayResult } from './replay.js'
import { replayReport } from './replay-report.js'
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
