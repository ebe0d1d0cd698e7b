import type { CasState, CasStore } from '../store/cas-store.js'

/** What a check works with. */
export interface Examined {
  /** Two connections to one store. */
  readonly one: CasStore
  readonly other: CasStore
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
