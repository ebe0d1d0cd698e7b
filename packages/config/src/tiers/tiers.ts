import type { Policy } from 'sluicegate'
import type { AlgorithmName } from '../algorithms.js'
import { ConfigError, type Fault } from '../fault.js'
import { judgedPolicy, type WrittenRule } from '../judged-policy.js'
import { didYouMean } from '../spelling.js'
import type { PrefixRules } from './prefix-rules.js'
import { MAX_TARGETS, TierData, type TierTarget } from './tier-data.js'

/** The limit of a tier, or of keys with the same limit of their own. */
export interface TierLimit {
  readonly policy: Policy
  /** The most keys that can have it; undefined: any number. */
  readonly keys: number | undefined
}

/** What {@link Tiers} are made of. */
export interface TierParts {
  readonly base: Policy
  /** Limits of the tiers by name. */
  readonly named: ReadonlyMap<string, Policy>
  /** Keys that the configuration itself has. They come before those of the file. */
  readonly keys: TierData
  /** Where `keys` are. */
  readonly keysFile: string
  readonly file: string | undefined
  readonly fileData: TierData
}

/** Limits by key: of tiers, and of single keys. Immutable; a changed data file makes others. */
export class Tiers {
  readonly #parts: TierParts
  /** By the id of the target. */
  readonly limits: ReadonlyMap<string, TierLimit>
  /** Those of the configuration, then those of the file. */
  readonly prefixes: PrefixRules

  /** @throws {ConfigError} for a key with an unknown tier or a limit that the library refuses. */
  constructor(parts: TierParts) {
    this.#parts = parts
    const faults: Fault[] = []
    const limits = new Map<string, TierLimit>(Array.from(parts.named, ([name, policy]) => [name, { policy, keys: undefined }]))
    for (const target of parts.keys.targets) addTarget(limits, target, parts, parts.keysFile, faults)
    for (const target of parts.fileData.targets) addTarget(limits, target, parts, parts.file ?? '', faults)
    if (faults.length === 0 && limits.size > MAX_TARGETS) {
      const reason = `has more than ${MAX_TARGETS} different limits: give keys with the same limit a tier`
      faults.push({ file: parts.file ?? parts.keysFile, line: 1, column: 1, path: '', reason })
    }
    if (faults.length > 0) throw new ConfigError(faults)
    this.limits = limits
    const [first, second] = [parts.keys.prefixes, parts.fileData.prefixes]
    this.prefixes = { size: first.size + second.size, idOf: (key) => first.idOf(key) ?? second.idOf(key) }
  }

  /** The data file, to be watched; undefined without one. */
  get file(): string | undefined {
    return this.#parts.file
  }

  /** Keys and prefixes. */
  get size(): number {
    return this.#parts.keys.size + this.#parts.fileData.size
  }

  /** For people: what was given. */
  get parts(): TierParts {
    return this.#parts
  }

  /** The id of the limit of a key; undefined: the policy's own. A key comes before a prefix, the configuration before the file. */
  idOf(key: string): string | undefined {
    const { keys, fileData } = this.#parts
    return keys.exact(key) ?? fileData.exact(key) ?? this.prefixes.idOf(key)
  }

  /** The limit of a key. */
  policyOf(key: string): Policy {
    const id = this.idOf(key)
    return id === undefined ? this.#parts.base : (this.limits.get(id) as TierLimit).policy
  }

  /**
   * With the data file as it is now.
   *
   * @throws {ConfigError}
   */
  withFileData(fileData: TierData): Tiers {
    return new Tiers({ ...this.#parts, fileData })
  }
}

/** The policy of `base` with another limit, window or burst; undefined after a fault. A burst is not taken over, since it belongs to the limit. */
export function tierPolicy(
  base: Policy,
  { limit, window, burst }: Pick<WrittenRule, 'limit' | 'window' | 'burst'>,
  fault: (option: string, reason: string) => void,
): Policy | undefined {
  const { algorithm, name, windowMs, calendar } = base
  const rule: WrittenRule = {
    name,
    limit,
    ...(algorithm === 'concurrency' ? { ttl: `${windowMs}ms` } : { window: window ?? calendar?.unit ?? `${windowMs}ms` }),
    ...(burst !== undefined && { burst }),
    ...(calendar && (window === undefined || !/^\d/.test(String(window))) && { 'time-zone': calendar.timeZone }),
  }
  if (burst !== undefined && algorithm !== 'token-bucket' && algorithm !== 'gcra')
    fault('burst', `is for token-bucket and gcra, not for ${algorithm}`)
  else if (window !== undefined && algorithm === 'concurrency') fault('window', 'is not for concurrency')
  else return judgedPolicy({ fault }, algorithm as AlgorithmName, rule, (reason) => fault('name', reason))
  return undefined
}

function addTarget(
  limits: Map<string, TierLimit>,
  { id, tier, limit, window, burst, line, column, path, keys }: TierTarget,
  { base, named }: TierParts,
  file: string,
  faults: Fault[],
): void {
  const fault = (reason: string): void => {
    faults.push({ file, line, column, path, reason })
  }
  if (tier !== undefined) {
    if (!named.has(tier)) fault(`there is no tier ${JSON.stringify(tier.slice(0, 60))}${didYouMean(tier, named.keys())}`)
    return
  }
  const before = limits.get(id)
  const policy = before?.policy ?? tierPolicy(base, { limit, window, burst }, (option, reason) => fault(`${option} ${reason}`))
  if (policy === undefined) return
  const sum = before === undefined ? keys : keys === undefined || before.keys === undefined ? undefined : keys + before.keys
  limits.set(id, { policy, keys: sum })
}

/** No keys. */
export const NO_DATA: TierData = new TierData()
