import assert from 'node:assert/strict'
import { manualClock } from 'sluicegate'
import type { Config } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { Engine } from 'sluicegate-server/dist/engine/engine.js'
import { RateLimits } from 'sluicegate-server/dist/envoy/rate-limits.js'
import { Random } from '../../index.js'
import { stormedService } from '../storm/bystanders.js'
import { STORM_NAMES, type StormName, storm } from '../storm/storm.js'
import { fuzzGrpc } from './fuzz-grpc.js'
import { fuzzInput } from './fuzz-input.js'
import { fuzzJson, fuzzResp } from './fuzz-texts.js'
import { randomYaml, type YamlForm } from './random-yaml.js'

/** Processor time that one file may take. */
const MAX_CPU_MS = 2_000
/** Of this number of files one is read again cut off at each of its characters. */
const FILES_PER_CUT = 1_000
/** Tables of keys are made for each policy, which takes longer than reading the file. */
const POLICIES_USED = 3

/**
 * Reads `inputs` random files of one form, which have the structure of configurations with faults in it. Each is accepted, and then its policies
 * decide, or it is refused with at least one fault that has a place in the file.
 *
 * @throws with the seed and the number of the input that failed.
 */
async function fuzzYaml(form: YamlForm, seed: number, inputs: number): Promise<YamlCounts> {
  const random = new Random(seed)
  const counts = { accepted: 0, refused: 0, cut: 0 }
  const read = (number: number, text: string): Promise<void> =>
    fuzzInput(seed, number, text, () => {
      const beforeUs = cpuUs()
      const config = accepted(text)
      if (config === undefined) counts.refused++
      else {
        counts.accepted++
        assertDecides(config)
      }
      const cpuMs = (cpuUs() - beforeUs) / 1_000
      assert.ok(cpuMs < MAX_CPU_MS, `reading took ${Math.round(cpuMs)} ms of processor time`)
    })
  for (let number = 0; number < inputs; number++) {
    const text = randomYaml(random, form)
    await read(number, text)
    if (number % FILES_PER_CUT !== 0) continue
    for (let end = 0; end < text.length; end++, counts.cut++) await read(number, text.slice(0, end))
  }
  return counts
}

/** How many files were accepted and refused, those that were cut off included. */
interface YamlCounts {
  readonly accepted: number
  readonly refused: number
  readonly cut: number
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** The configuration; undefined where it is refused as it should be. */
function accepted(text: string): Config | undefined {
  try {
    return parseConfig(text, 'gate.yaml')
  } catch (error) {
    assert.ok(error instanceof ConfigError, error as Error)
    assertPlaces(error, text)
    return undefined
  }
}

function assertPlaces({ faults }: ConfigError, text: string): void {
  const lines = text.split(/\n/)
  assert.ok(faults.length > 0, 'a file is refused for a reason')
  for (const { file, line, column, reason } of faults) {
    assert.equal(file, 'gate.yaml')
    assert.ok(Number.isInteger(line) && line >= 1 && line <= lines.length, `line ${line} of ${lines.length}: ${reason}`)
    const lastColumn = (lines[line - 1] as string).length + 1
    assert.ok(Number.isInteger(column) && column >= 1 && column <= lastColumn, `column ${column} of ${lastColumn}: ${reason}`)
    assert.ok(reason.length > 0 && reason.length < 5_000, reason)
  }
}

/** A table that this machine has no memory for is a RangeError, which the service reports when it starts. */
function assertDecides(config: Config): void {
  let engine: Engine
  try {
    engine = new Engine(allPolicies(config).slice(0, POLICIES_USED), { clock: manualClock(1.7e12) })
  } catch (error) {
    if (error instanceof RangeError) return
    throw error
  }
  for (const { policy, take } of Array.from(engine.policies, (served) => ({ policy: served.policy, take: served.take.bind(served) }))) {
    const key = policy.algorithm === 'all-of' ? (policy.policies ?? []).map(() => 'a') : 'a'
    const decision = take(key, 1)
    assert.ok(!(decision instanceof Promise))
    assert.equal(typeof decision.allowed, 'boolean')
    assert.ok(decision.remaining >= 0 && decision.remaining <= Math.max(policy.limit, policy.burst), `${decision.remaining} remain`)
  }
  if (allPolicies(config).length <= POLICIES_USED) assertRequestsAnswered(engine, config)
  engine.close()
}

function assertRequestsAnswered(engine: Engine, { domains }: Config): void {
  const limits = new RateLimits(engine, domains, undefined, () => 1.7e12)
  for (const { domain, rules } of domains) {
    const descriptors = [...rules.keys()].slice(0, 3).map((key) => ({
      entries: [{ key, value: 'a' }],
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    }))
    if (descriptors.length === 0) continue
    const answer = limits.decide({ domain, descriptors, hitsAddend: 0 })
    assert.ok(!(answer instanceof Promise))
    assert.equal(answer.statuses.length, descriptors.length)
  }
}

/** The program that runs the service, and options of the service; by default this program, without options. */
const NODE = process.env.STORM_NODE ?? process.execPath
const FLAGS = process.env.STORM_FLAGS?.split(' ') ?? []

/**
 * A storm of `clients` against its own service, in its own process. The variables STORM_NODE and STORM_FLAGS choose another version of Node.js and
 * more processes, or encrypts: `STORM_FLAGS='--processes 2 encrypted'`.
 */
async function proveStorm(name: StormName, seed: number, clients: number): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    const stormed = await stormedService(
      { after: (end: () => unknown) => void ends.push(end) } as Parameters<typeof stormedService>[0],
      NODE,
      ...FLAGS,
    )
    await storm(stormed, name, seed, clients)
    await stormed.isAsBefore()
  } finally {
    for (const end of ends) await end()
  }
}

/** Feeds a number of random inputs of a seed to one reader; rejects, or throws, with the one that failed. */
export type Fuzzer = (seed: number, inputs: number) => unknown

/** By the name of what is read. */
export const FUZZERS: Readonly<Record<string, Fuzzer>> = {
  resp: fuzzResp,
  grpc: fuzzGrpc,
  json: fuzzJson,
  'envoy-yaml': (seed, inputs) => fuzzYaml('envoy', seed, inputs),
  yaml: (seed, inputs) => fuzzYaml('own', seed, inputs),
  ...Object.fromEntries(STORM_NAMES.map((name) => [`storm-${name}`, (seed: number, clients: number) => proveStorm(name, seed, clients)])),
}
