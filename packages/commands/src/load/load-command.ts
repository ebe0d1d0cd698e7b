import { writeFileSync } from 'node:fs'
import { timeSpanMs } from 'sluicegate-config/time-span.js'
import { htmlReport, textReport } from '../report/text-report.js'
import { checkOutput, UsageError } from '../terminal/usage-error.js'
import { keyPlanOf } from './key-choice.js'
import type { ArrivalPlan, LoadPlan, TargetPlan } from './load-plan.js'
import { loadReport, loopText } from './load-report.js'
import type { LoadSecond } from './load-result.js'
import { type LoadProgram, startLoad } from './run-load.js'

const ARRIVALS = ['constant', 'poisson', 'ramp', 'burst'] as const
const DEFAULT_BURST = 100
const MOST = { rate: 10_000_000, connections: 10_000, processes: 64, durationMs: 86_400_000, graceMs: 3_600_000 }

/** Options of `sluicegate load`, as written. */
export interface LoadFlags {
  readonly policy?: string
  readonly config?: string
  readonly throttle?: string
  readonly domain?: string
  readonly descriptor?: readonly string[]
  readonly rate: string
  readonly arrivals: string
  readonly toRate?: string
  readonly burst?: string
  readonly closed?: string
  readonly keys: string
  readonly cost: string
  readonly duration: string
  readonly grace: string
  readonly warmUp: string
  readonly connections: string
  readonly processes: string
  readonly seed?: string
  readonly record?: string
  readonly html?: string
  readonly json?: true
  readonly allowRemote?: true
}

/**
 * Sends load and prints what was measured. SIGINT ends the run early and prints what was measured until then; a second one ends at once.
 *
 * @throws {UsageError} for options that are wrong, for a target outside of this machine without `--allow-remote`, and for one that answered nothing.
 */
export async function load(url: string, flags: LoadFlags, token: string | undefined, program: LoadProgram): Promise<void> {
  const plan = planOf(url, flags, token)
  checkOutput('--html', flags.html)
  checkOutput('--record', flags.record)
  process.stderr.write(`${loopText(plan.loop)} for ${plan.durationMs / 1_000} s at ${plan.target.url}, seed ${plan.seed}\n`)
  const running = startLoad(plan, program, showSecond)
  let isStopping = false
  const onInterrupt = (): void => {
    if (isStopping) process.exit(130)
    isStopping = true
    running.stop()
  }
  process.on('SIGINT', onInterrupt)
  try {
    const result = await running.result
    const report = loadReport(result, new Date())
    if (flags.html !== undefined) writeFileSync(flags.html, htmlReport(report))
    process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : textReport(report))
    if (result.sent > 0 && result.allowed + result.denied === 0) throw new UsageError(`${url} answered none of ${result.sent} requests`, 1)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    throw new UsageError((error as Error).message, 1)
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

function showSecond({ second, sent, allowed, denied, errors, p50Ms, p99Ms }: LoadSecond): void {
  const figures = [`${sent} sent`, `${allowed} allowed`, `${denied} denied`, `${errors} errors`, `50 % ${p50Ms} ms`, `99 % ${p99Ms} ms`]
  process.stderr.write(`${String(second + 1).padStart(4)} s  ${figures.join('  ')}\n`)
}

/** @throws {UsageError} */
function planOf(url: string, flags: LoadFlags, token: string | undefined): LoadPlan {
  const target = targetOf(url, flags, token)
  if (!flags.allowRemote) refuseRemote(target)
  const durationMs = spanOf('duration', flags.duration, 1, MOST.durationMs)
  return {
    target,
    loop:
      flags.closed === undefined
        ? { kind: 'open', arrivals: arrivalsOf(flags, durationMs) }
        : { kind: 'closed', callers: integerOf('closed', flags.closed, 1, MOST.connections) },
    keys: keyPlanOf(flags.keys),
    durationMs,
    warmUpMs: spanOf('warm-up', flags.warmUp, 0, MOST.durationMs),
    graceMs: spanOf('grace', flags.grace, 0, MOST.graceMs),
    seed: flags.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : integerOf('seed', flags.seed, 0, 2 ** 32 - 1),
    processes: integerOf('processes', flags.processes, 1, MOST.processes),
    record: flags.record,
  }
}

function arrivalsOf({ arrivals, rate: text, toRate, burst }: LoadFlags, durationMs: number): ArrivalPlan {
  const kind = ARRIVALS.find((each) => each === arrivals)
  if (kind === undefined) throw new UsageError(`--arrivals must be one of ${ARRIVALS.join(', ')}, not "${arrivals}"`)
  if (toRate !== undefined && kind !== 'ramp') throw new UsageError('--to-rate is for --arrivals ramp')
  if (burst !== undefined && kind !== 'burst') throw new UsageError('--burst is for --arrivals burst')
  const rate = rateOf('rate', text, kind === 'ramp' ? 0 : 0.001)
  if (kind === 'burst') return { kind, rate, size: burst === undefined ? DEFAULT_BURST : integerOf('burst', burst, 1, 1_000_000) }
  if (kind !== 'ramp') return { kind, rate }
  if (toRate === undefined) throw new UsageError('--arrivals ramp needs --to-rate')
  const to = rateOf('to-rate', toRate, 0)
  if (rate + to === 0) throw new UsageError('--rate and --to-rate are both 0')
  return { kind, fromRate: rate, toRate: to, overMs: durationMs }
}

const HTTP = /^(https?:|unix:)/
const FORMS = 'http://127.0.0.1:8080, resp://127.0.0.1:6380, grpc://127.0.0.1:8081, redis://127.0.0.1:6379 or memory'

function targetOf(url: string, flags: LoadFlags, token: string | undefined): TargetPlan {
  const kind = HTTP.test(url)
    ? 'http'
    : url === 'memory'
      ? 'memory'
      : (['resp', 'grpc', 'redis'] as const).find((each) => url.startsWith(`${each}:`) || url.startsWith(`${each}s:`))
  if (kind === undefined || (kind !== 'memory' && !url.startsWith('unix:') && !URL.canParse(url)))
    throw new UsageError(`the target must be such as ${FORMS}, not "${url}"`)
  return {
    kind,
    url,
    policy: flags.policy,
    cost: integerOf('cost', flags.cost, 1, Number.MAX_SAFE_INTEGER),
    connections: integerOf('connections', flags.connections, 1, MOST.connections),
    token,
    config: flags.config,
    throttle: flags.throttle,
    envoy: envoyOf(flags),
  }
}

function envoyOf({ domain, descriptor }: LoadFlags): TargetPlan['envoy'] {
  if (domain === undefined) return undefined
  const entries = (descriptor ?? []).map((text) => {
    const at = text.indexOf('=')
    if (at < 1) throw new UsageError(`--descriptor must be KEY=VALUE, such as user={key}, not "${text}"`)
    return [text.slice(0, at), text.slice(at + 1)] as const
  })
  if (entries.length === 0) throw new UsageError('--domain needs --descriptor KEY=VALUE, such as user={key}')
  return { domain, entries }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Load on a machine of others is an attack. */
function refuseRemote({ kind, url }: TargetPlan): void {
  if (kind === 'memory' || url.startsWith('unix:')) return
  const { hostname } = new URL(url)
  if (!LOOPBACK.test(hostname)) throw new UsageError(`${hostname} is not this machine: give --allow-remote if its owner agreed to the load`)
}

function integerOf(option: string, text: string, min: number, max: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= min && value <= max)) throw new UsageError(`--${option} must be an integer from ${min} to ${max}, not "${text}"`)
  return value
}

function rateOf(option: string, text: string, min: number): number {
  const value = /^\d{1,8}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= min && value <= MOST.rate))
    throw new UsageError(`--${option} must be requests a second, from ${min} to ${MOST.rate}, not "${text}"`)
  return value
}

function spanOf(option: string, text: string, minMs: number, maxMs: number): number {
  const ms = text === '0' ? 0 : timeSpanMs(text)
  if (ms === undefined || ms < minMs || ms > maxMs)
    throw new UsageError(`--${option} must be a time of at most ${maxMs / 3_600_000}h, such as 10s or 500ms, not "${text}"`)
  return ms
}
