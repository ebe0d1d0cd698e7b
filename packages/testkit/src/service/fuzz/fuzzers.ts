import { STORM_NAMES, type StormName, storm } from '../storm/storm.js'
import { stormedService } from '../storm/stormed-service.js'
import { fuzzGrpc } from './fuzz-grpc.js'
import { fuzzJson } from './fuzz-json.js'
import { fuzzResp } from './fuzz-resp.js'
import { fuzzYaml } from './fuzz-yaml.js'

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
