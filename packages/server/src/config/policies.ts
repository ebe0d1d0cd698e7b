import { type Duration, gcra, type Policy, PolicyError, type RateOptions, tokenBucket } from 'sluicegate'
import { DEFAULT_MAX_KEYS, ON_FULL, type PolicyConfig } from './config.js'
import type { Section } from './section.js'

const MAKERS = { 'token-bucket': tokenBucket, gcra } as const
const ALGORITHMS = Object.keys(MAKERS) as (keyof typeof MAKERS)[]
const MAX_KEYS_LIMIT = 100_000_000
/** Each policy has a table of its own; a metric's labels grow with their number. */
const MAX_POLICIES = 1_000

/** What a policy is tried with in place of an option already found at fault, so that the next fault is found too. */
const STAND_INS = { limit: 1, window: '1s', burst: 1, name: 'x' } as const

/** The section `policies`: at least one, each under its name. */
export function readPolicies(root: Section): PolicyConfig[] {
  const section = root.section('policies')
  const names = section.names()
  if (names.length === 0)
    root.fault('policies', 'must name at least one policy, for example "per-user: { algorithm: token-bucket, limit: 100, window: 1m }"')
  if (names.length > MAX_POLICIES) root.fault('policies', `must be at most ${MAX_POLICIES}, not ${names.length}`)
  return names.flatMap((name) => readPolicy(section, name) ?? [])
}

function readPolicy(policies: Section, name: string): PolicyConfig | undefined {
  const section = policies.section(name)
  const algorithm = section.oneOf('algorithm', ALGORITHMS)
  const options = {
    name,
    limit: section.number('limit'),
    // A bare number would be milliseconds to the library and seconds to most readers.
    window: section.text('window', '250ms, 10s, 1m, 24h or 30d') as Duration | undefined,
    burst: section.number('burst'),
  }
  const maxKeys = section.integer('max-keys', 1, MAX_KEYS_LIMIT) ?? DEFAULT_MAX_KEYS
  const onFull = section.oneOf('on-full', ON_FULL) ?? 'evict'
  for (const option of ['algorithm', 'limit', 'window']) {
    if (!section.has(option)) section.fault(option, 'is missing')
  }
  section.done()

  const policy = checkedPolicy(policies, section, algorithm ?? 'token-bucket', options)
  return policy === undefined || algorithm === undefined ? undefined : { policy, maxKeys, onFull }
}

type WrittenOptions = { readonly [Option in keyof typeof STAND_INS]: RateOptions[Option] | undefined }

/** The library's own judgement, asked again without each option that it refused until it has no more to say. */
function checkedPolicy(policies: Section, section: Section, algorithm: keyof typeof MAKERS, written: WrittenOptions): Policy | undefined {
  const refused = new Set<string>()
  const trial: Record<string, unknown> = { name: written.name }
  for (const option of ['limit', 'window', 'burst'] as const) {
    if (written[option] !== undefined) trial[option] = written[option]
    // Left out, or already a fault: burst falls back to its default, the others need something to go on.
    else if (option !== 'burst') refuse(option)
  }
  for (;;) {
    try {
      const policy = MAKERS[algorithm](trial as unknown as RateOptions)
      return refused.size === 0 ? policy : undefined
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      const { option } = error
      // A clash of several options is only worth telling when each of them is as the user wrote it.
      if (error.code === 'RANGE_UNSUPPORTED' && refused.size > 0) return undefined
      if (option === 'name') policies.nameFault(written.name as string, error.message)
      else section.fault(option, reasonOf(error))
      if (refused.has(option) || !(option in STAND_INS) || error.code === 'RANGE_UNSUPPORTED') return undefined
      refuse(option as keyof typeof STAND_INS)
    }
  }

  function refuse(option: keyof typeof STAND_INS): void {
    refused.add(option)
    trial[option] = STAND_INS[option]
  }
}

/** The library starts its messages with the option, which the fault's path has already said. */
function reasonOf({ option, message }: PolicyError): string {
  return message.startsWith(`${option}: `) ? message.slice(option.length + 2) : message
}
