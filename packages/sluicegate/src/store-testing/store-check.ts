import type { CasState, CasStore } from '../store/cas-store.js'

/** What a check works with. */
export interface Examined {
  /** Two connections to one store; calls of the other one for one key are made by each of its {@link doors} in turns. */
  readonly one: CasStore
  readonly other: CasStore
  /** The ways in which it reads and swaps a key. */
  readonly doors: readonly Pick<CasStore, 'name' | 'read' | 'swap'>[]
  readonly wait: (ms: number) => Promise<void>
  /** A key that was never used. */
  freshKey(): string
}

/** One check: throws what is wrong, and what to do. */
export interface StoreCheck {
  readonly name: string
  run(examined: Examined): Promise<void>
}

/** @throws {Error} unless it holds. */
export function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

/** A value that says `text`. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function textOf({ value }: CasState): string | undefined {
  return value === undefined ? undefined : new TextDecoder().decode(value)
}

/** Long enough for any check. */
export const TTL_MS = 60_000

/** A check repeats what it does for this long at most: runners of tests give one 5 s, and a call of a store may take 300 ms. */
const LONGEST_MS = 2500

/** Calls `round` that often, until it says that it is done, or until a check has taken long enough. */
export async function repeated(most: number, round: (i: number) => Promise<unknown>): Promise<void> {
  const untilMs = performance.now() + LONGEST_MS
  for (let i = 0; i < most && (i === 0 || performance.now() < untilMs); i++) if ((await round(i)) === true) return
}

/** Keys that differ by one letter each: of many scripts, of two UTF-16 units, and long ones. */
export function unlikeKeys(begin: string): readonly string[] {
  const long = 'x'.repeat(7000)
  const ends = [
    '',
    'a',
    'A',
    'ä',
    'a\u0308',
    '%',
    '_',
    `'"\\`,
    'ж',
    'я',
    'א',
    '中',
    '丰',
    '한',
    '\u{1F600}',
    '\u{1F601}',
    `${long}1`,
    `${long}2`,
  ]
  return ends.map((end) => begin + end)
}
