import { proveStorm } from '../storm/prove-storm.js'
import { STORM_NAMES } from '../storm/storm.js'
import { fuzzGrpc } from './fuzz-grpc.js'
import { fuzzJson } from './fuzz-json.js'
import { fuzzResp } from './fuzz-resp.js'
import { fuzzYaml } from './fuzz-yaml.js'

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
