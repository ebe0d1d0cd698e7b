/**
 * Whether a test has put its own in the place of `Date`, which then moves only when the test says so: fake timers of Jest, Vitest and Sinon
 * (all of them `@sinonjs/fake-timers`, which leaves `clock` on what it replaces) and of `node:test` (`isMock`).
 */
export function isTimeMocked(): boolean {
  return Object.hasOwn(Date, 'clock') || Object.hasOwn(Date, 'isMock')
}
