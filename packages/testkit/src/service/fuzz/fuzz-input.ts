import { type Clock, manualClock } from 'sluicegate'
import type { Engine } from 'sluicegate-server/dist/engine/engine.js'
import { Random } from '../../random.js'

/** With a few bytes changed, removed or repeated. */
export function damaged(random: Random, input: Buffer): Buffer {
  const bytes = [...input]
  for (let faults = random.integer(1, 3); faults > 0 && bytes.length > 0; faults--) {
    const at = random.integer(0, bytes.length - 1)
    const fault = random.integer(0, 3)
    if (fault === 0) bytes[at] = random.integer(0, 255)
    else if (fault === 1) bytes.splice(at, random.magnitude(1, 8))
    else if (fault === 2) bytes.splice(at, 0, ...bytes.slice(at, at + random.magnitude(1, 8)))
    else bytes.length = at
  }
  return Buffer.from(bytes)
}

const START_MS = 1.7e12

/** What inputs are fed to: three of a kind, on one clock that moves on now and then. They are closed after the last. */
export function* fuzzRounds<Subject extends { readonly engine: Engine }>(
  seed: number,
  inputs: number,
  subjectOf: (clock: Clock) => Subject,
): Generator<{ readonly random: Random; readonly number: number; readonly subjects: readonly Subject[] }> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const subjects = [1, 2, 3].map(() => subjectOf(clock))
  for (let number = 0; number < inputs; number++) {
    if (random.chance(0.1)) clock.advance(random.integer(0, 3_000))
    yield { random, number, subjects }
  }
  for (const { engine } of subjects) engine.close()
}

/** Runs one input of a fuzzer; what it throws names the seed and the number of the input, and shows it. */
export async function fuzzInput(seed: number, number: number, input: Buffer | string, run: () => void | Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    const shown = typeof input === 'string' ? input : input.toString('latin1')
    throw new Error(`seed ${seed}, input ${number}: ${JSON.stringify(shown)}`, { cause: error })
  }
}

/** The sizes of pieces in which each input arrives: whole, byte by byte, and of any size. */
export function pieceSizes(input: Buffer, anySize: () => number): readonly (() => number)[] {
  return [() => Math.max(1, input.length), () => 1, anySize]
}

/** Hands over `input` in pieces, each a copy, as a socket does. */
export function inPieces(input: Buffer, pieceBytes: () => number, take: (piece: Buffer) => void): void {
  for (let at = 0; at < input.length; ) {
    const end = Math.min(at + pieceBytes(), input.length)
    take(Buffer.from(input.subarray(at, end)))
    at = end
  }
}
