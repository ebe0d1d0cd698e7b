import { readFileSync, writeFileSync } from 'node:fs'
import { type AnsweredStep, answered, oracleSubject, type Vector } from './vector.js'
import { VECTOR_SCRIPTS } from './vector-scripts.js'

/** Each has a file of its own: `packages/testkit/vectors/<algorithm>.json`. */
export const VECTOR_ALGORITHMS = ['token-bucket', 'gcra'] as const

export type VectorAlgorithm = (typeof VECTOR_ALGORITHMS)[number]

/** The committed golden vectors of an algorithm. */
export function savedVectors(algorithm: VectorAlgorithm): readonly Vector<AnsweredStep>[] {
  return (JSON.parse(vectorText(algorithm)) as { vectors: Vector<AnsweredStep>[] }).vectors
}

export function vectorText(algorithm: VectorAlgorithm): string {
  return readFileSync(fileOf(algorithm), 'utf8')
}

/** The file as the oracle writes it: one step a line, so that a change reads well in a diff. */
export function freshVectorText(algorithm: VectorAlgorithm): string {
  const vectors = VECTOR_SCRIPTS.map((script) => textOf(answered(script, oracleSubject(script.policy))))
  return `{\n"format": 1,\n"algorithm": "${algorithm}",\n"vectors": [\n${vectors.join(',\n')}\n]\n}\n`
}

export function writeVectors(): void {
  for (const algorithm of VECTOR_ALGORITHMS) writeFileSync(fileOf(algorithm), freshVectorText(algorithm))
}

function textOf({ name, policy, steps }: Vector<AnsweredStep>): string {
  const lines = steps.map((step) => `    ${JSON.stringify(step)}`)
  return `  { "name": ${JSON.stringify(name)}, "policy": ${JSON.stringify(policy)}, "steps": [\n${lines.join(',\n')}\n  ] }`
}

function fileOf(algorithm: VectorAlgorithm): URL {
  return new URL(`../vectors/${algorithm}.json`, import.meta.url)
}
