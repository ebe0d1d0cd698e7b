import { test } from 'node:test'

/** Whether this is the long run: `npm run test:long` sets the variable, `npm test` does not. */
export const IS_LONG_RUN = process.env.SLUICEGATE_TEST_RUN === 'long'

/**
 * The size of a test that can be of any size, such as its number of random sequences: the first in `npm test`, the second in
 * `npm run test:long`, which runs every test file that calls this or {@link longTest}.
 */
export function shortOrLong(short: number, long: number): number {
  return IS_LONG_RUN ? long : short
}

/** Of tests that differ in an algorithm or a client: every n-th runs in `npm test`, all of them in `npm run test:long`. */
export function everyNth(i: number, n: number): typeof test {
  return i % n === 0 ? test : longTest
}

/** A test that takes too long for `npm test`, which tests the same on one client, in one process, or in its parts. */
export const longTest: typeof test = IS_LONG_RUN ? test : (((): Promise<void> => Promise.resolve()) as unknown as typeof test)
