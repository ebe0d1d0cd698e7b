import type { OpenCore } from '../memory/open-core.js'
import { decodedSnapshot, encodedSnapshot, invalidSnapshot } from '../memory/snapshot/snapshot.js'

/** The table that a snapshot is of: its size, and the secret by which keys have their places. Its keys are written as those of a limiter. */
export interface TableDescription {
  readonly rateTable: true
  readonly maxKeys: number
  readonly growTo: number
  readonly secret: readonly [number, number]
}

/** @throws {StoreError} `CONTENTION` when other threads kept changing a key. */
export function tableSnapshot(open: OpenCore, description: TableDescription, nowUs: number): Uint8Array {
  open.look()
  return encodedSnapshot(description, [...open.saveTable(nowUs)])
}

/**
 * The table that a snapshot is of, and its keys.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function tableInSnapshot(bytes: unknown): { readonly description: TableDescription; readonly contents: Uint8Array } {
  const { description, contents } = decodedSnapshot(bytes)
  const { rateTable, maxKeys, growTo, secret } = description as Partial<TableDescription>
  const isTable =
    rateTable === true &&
    Number.isInteger(maxKeys) &&
    Number.isInteger(growTo) &&
    Array.isArray(secret) &&
    secret.length === 2 &&
    secret.every((half) => (half | 0) === half)
  if (!isTable) throw invalidSnapshot('is not of a rate table')
  return { description: description as unknown as TableDescription, contents }
}

/**
 * Puts the keys into a table of the same size that no thread uses yet, with what they still owe at `nowUs`.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function restoreTable(open: OpenCore, contents: Uint8Array, nowUs: number): void {
  if (open.loadTable(nowUs, contents, 0) !== contents.length) throw invalidSnapshot('has keys that no table could have left')
}
