import { test } from 'node:test'

/** Whether this is the long run. The tools are built before the testkit, whose run-length.ts is the same for all other tests. */
export const IS_LONG_RUN = process.env.SLUICEGATE_TEST_RUN === 'long'

/** A test that takes too long for `npm test`. */
export const longTest: typeof test = IS_LONG_RUN ? test : (((): Promise<void> => Promise.resolve()) as unknown as typeof test)
