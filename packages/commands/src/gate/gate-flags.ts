import type { GateOptions } from 'sluicegate/gate'
import { timeSpanMs } from 'sluicegate-config/time-span.js'
import { LineTemplate } from '../replay/log-reader.js'
import { KeyTemplate, RequestFilter, subnetOf } from '../replay/request-rule.js'
import { fileText, UsageError } from '../terminal/usage-error.js'
import type { LineRule } from './line-records.js'

/** Options of the command line, as written. */
export interface GateFlags {
  readonly follow?: readonly string[]
  readonly redis?: string
  readonly stream?: string
  readonly fromStart?: true
  readonly once?: true
  readonly format?: string
  readonly key: string
  readonly time?: string
  readonly ipv6Subnet?: string
  readonly match?: string
  readonly cost?: string
  readonly window: string
  readonly flag?: string
  readonly throttle?: string
  readonly block?: string
  readonly width?: string
  readonly maxVerdicts?: string
  readonly interval: string
  readonly nginxMap?: string
  readonly nginxGeo?: string
  readonly denyList?: string
  readonly reload?: string
  readonly reloadEvery: string
  readonly url?: string
  readonly policy?: string
  readonly penalty?: string
  readonly tokenFile?: string
  readonly dryRun?: true
  readonly json?: true
}

const MAX_TOKEN_BYTES = 4_096
const THRESHOLD = /^(\d{1,10})(?: +below +(\d{1,10}))?(?: +for +(\S+))?$/

/** The options of the gate itself. @throws {UsageError} */
export function gateOptionsOf(flags: GateFlags): GateOptions {
  const thresholds = {
    ...(flags.flag !== undefined && { flag: thresholdOf('--flag', flags.flag) }),
    ...(flags.throttle !== undefined && { throttle: thresholdOf('--throttle', flags.throttle) }),
    ...(flags.block !== undefined && { block: thresholdOf('--block', flags.block) }),
  }
  if (Object.keys(thresholds).length === 0)
    throw new UsageError('say when a key gets a verdict: --block "1000 for 10m", --throttle or --flag')
  return {
    window: spanOf('--window', flags.window),
    ...thresholds,
    ...(flags.width !== undefined && { width: integerOf('--width', flags.width) }),
    ...(flags.maxVerdicts !== undefined && { maxVerdicts: integerOf('--max-verdicts', flags.maxVerdicts) }),
  }
}

/** What is read from a line. @throws {UsageError} */
export function lineRuleOf({ format, key, match, cost, time, ipv6Subnet }: GateFlags): LineRule {
  return {
    format,
    time: time === undefined ? undefined : new LineTemplate('--time', time, '$time_local'),
    key: new KeyTemplate(key, subnetOf(ipv6Subnet)),
    filter: match === undefined ? undefined : new RequestFilter(match),
    cost: cost === undefined ? undefined : costVariable(cost),
  }
}

function costVariable(text: string): string {
  const { variables, literals } = new LineTemplate('--cost', text, '$body_bytes_sent')
  if (literals.some((literal) => literal !== '')) throw new UsageError(`--cost: "${text}" is no variable, such as $body_bytes_sent`)
  return (variables[0] as { name: string }).name
}

/** `1000`, `1000 for 10m`, or `1000 below 400 for 10m`. */
function thresholdOf(option: string, text: string): Exclude<GateOptions['block'], number | undefined> {
  const [, above, below, span] = THRESHOLD.exec(text.trim()) ?? []
  if (above === undefined) throw new UsageError(`${option}: "${text}" is no threshold such as "1000 below 400 for 10m"`)
  return {
    above: Number(above),
    ...(below !== undefined && { below: Number(below) }),
    ...(span !== undefined && { for: spanOf(option, span) }),
  }
}

/** Milliseconds. @throws {UsageError} */
export function spanOf(option: string, text: string): number {
  const ms = timeSpanMs(text)
  if (ms === undefined || ms === 0) throw new UsageError(`${option}: "${text}" is no time such as 500ms, 10s, 1m or 1h`)
  return ms
}

/** @throws {UsageError} */
export function integerOf(option: string, text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new UsageError(`${option} must be an integer from 1, not "${text}"`)
  return Number(text)
}

/** The token in a file, which may end in a newline. @throws {UsageError} */
export function tokenIn(file: string): string {
  const token = fileText('--token-file', file, MAX_TOKEN_BYTES).trim()
  if (token === '') throw new UsageError(`--token-file: ${file} is empty`, 1)
  if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError(`--token-file: ${file} has more than a token: one word of ASCII`, 1)
  return token
}
