import { readFileSync, writeFileSync } from 'node:fs'
import type { AlgorithmName } from '../oracle/policy-spec.js'
import { ALL_OF_SCRIPTS } from './all-of-scripts.js'
import { CONCURRENCY_SCRIPTS } from './concurrency-scripts.js'
import { FIXED_WINDOW_SCRIPTS } from './fixed-window-scripts.js'
import { RATE_SCRIPTS } from './rate-scripts.js'
import { SLIDING_LOG_SCRIPTS } from './sliding-log-scripts.js'
import { SLIDING_WINDOW_SCRIPTS } from './sliding-window-scripts.js'
import { type AnsweredStep, answered, type Vector } from './vector.js'

/** What the golden vectors ask, without the answers: those come from the oracle. */
const SCRIPTS: { readonly [algorithm in AlgorithmName]: readonly Vector[] } = {
  'token-bucket': RATE_SCRIPTS,
  gcra: RATE_SCRIPTS,
  'fixed-window': FIXED_WINDOW_SCRIPTS,
  'sliding-window': SLIDING_WINDOW_SCRIPTS,
  'sliding-log': SLIDING_LOG_SCRIPTS,
  concurrency: CONCURRENCY_SCRIPTS,
  'all-of': ALL_OF_SCRIPTS,
}

/** Each has its own file: `packages/testkit/vectors/<algorithm>.json`. */
export const VECTOR_ALGORITHMS = Object.keys(SCRIPTS) as readonly AlgorithmName[]

/** The committed golden vectors of an algorithm. */
export function savedVectors(algorithm: AlgorithmName): readonly Vector<AnsweredStep>[] {
  return (JSON.parse(vectorText(algorithm)) as { vectors: Vector<AnsweredStep>[] }).vectors
}

export function vectorText(algorithm: AlgorithmName): string {
  return readFileSync(fileOf(algorithm), 'utf8')
}

/** The file as the oracle writes it: one step a line, so that a change reads well in a diff. */
export function freshVectorText(algorithm: AlgorithmName): string {
  const vectors = SCRIPTS[algorithm].map((script) => textOf(answered(algorithm, script)))
  return `{\n"format": 1,\n"algorithm": "${algorithm}",\n"vectors": [\n${vectors.join(',\n')}\n]\n}\n`
}

export function writeVectors(): void {
  for (const algorithm of VECTOR_ALGORITHMS) writeFileSync(fileOf(algorithm), freshVectorText(algorithm))
}

function textOf({ name, policy, steps }: Vector<AnsweredStep>): string {
  const lines = steps.map((step) => `    ${JSON.stringify(step)}`)
  return `  { "name": ${JSON.stringify(name)}, "policy": ${JSON.stringify(policy)}, "steps": [\n${lines.join(',\n')}\n  ] }`
}

function fileOf(algorithm: AlgorithmName): URL {
  return new URL(`../../vectors/${algorithm}.json`, import.meta.url)
}
