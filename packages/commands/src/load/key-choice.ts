import { fileText, UsageError } from '../terminal/usage-error.js'
import { SeededRandom } from './seeded-random.js'

const MAX_KEYS = 10_000_000
const DEFAULT_KEYS = 1_000
const MAX_TRACE_BYTES = 256 * 2 ** 20
const DEFAULT_EXPONENT = 1

/** Which keys requests have. */
export type KeyPlan =
  /** One key. */
  | { readonly kind: 'hot' }
  | { readonly kind: 'uniform'; readonly keys: number }
  /** Key number r has a chance in proportion to `1 / r^exponent`. */
  | { readonly kind: 'zipf'; readonly keys: number; readonly exponent: number }
  /** The lines of a file, in order, again and again. */
  | { readonly kind: 'file'; readonly path: string }

/**
 * The plan that a text of the command line describes: `hot`, `uniform:1000`, `zipf:1000:1.1` or `file:PATH`.
 *
 * @throws {UsageError} for any other text.
 */
export function keyPlanOf(text: string): KeyPlan {
  const [kind, first, second, ...rest] = text.split(':')
  if (kind === 'file' && first !== undefined && first !== '') return { kind, path: text.slice('file:'.length) }
  const keys = first === undefined ? DEFAULT_KEYS : Number(first)
  const exponent = second === undefined ? DEFAULT_EXPONENT : Number(second)
  const isCount = Number.isInteger(keys) && keys >= 1 && keys <= MAX_KEYS
  if (kind === 'hot' && first === undefined) return { kind }
  if (kind === 'uniform' && isCount && second === undefined) return { kind, keys }
  if (kind === 'zipf' && isCount && exponent > 0 && exponent <= 10 && rest.length === 0) return { kind, keys, exponent }
  throw new UsageError(`--keys must be hot, uniform:N, zipf:N, zipf:N:EXPONENT or file:PATH, with N from 1 to ${MAX_KEYS}, not "${text}"`)
}

/** The keys of one process, one after another. `share` is its number among `of` processes: it begins a file at another line. */
export function keysOf(plan: KeyPlan, seed: number, share = { index: 0, of: 1 }): () => string {
  switch (plan.kind) {
    case 'hot':
      return () => 'key-1'
    case 'uniform': {
      const random = new SeededRandom(seed)
      return () => `key-${1 + Math.floor(random.fraction() * plan.keys)}`
    }
    case 'zipf': {
      const random = new SeededRandom(seed)
      const upTo = zipfDistribution(plan.keys, plan.exponent)
      return () => `key-${1 + firstAbove(upTo, random.fraction())}`
    }
    case 'file':
      return traceOf(plan.path, share)
  }
}

/** Of each rank, counted from 0, the chance of a key of this rank or a lower one. */
export function zipfDistribution(keys: number, exponent: number): Float64Array {
  const upTo = new Float64Array(keys)
  let sum = 0
  for (let rank = 1; rank <= keys; rank++) {
    sum += rank ** -exponent
    upTo[rank - 1] = sum
  }
  for (let i = 0; i < keys; i++) upTo[i] = (upTo[i] as number) / sum
  return upTo
}

/** The first index whose value is above `fraction`. */
function firstAbove(upTo: Float64Array, fraction: number): number {
  let low = 0
  let high = upTo.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((upTo[middle] as number) > fraction) high = middle
    else low = middle + 1
  }
  return low
}

function traceOf(path: string, { index, of }: { readonly index: number; readonly of: number }): () => string {
  const lines = readTrace(path)
  let at = index
  return () => {
    const key = lines[at % lines.length] as string
    at += of
    return key
  }
}

function readTrace(path: string): string[] {
  const lines = fileText('--keys', path, MAX_TRACE_BYTES)
    .split(/\r?\n/)
    .filter((line) => line !== '')
  if (lines.length === 0) throw new UsageError(`--keys file:${path}: the file has no keys`, 1)
  return lines
}
