import type { PlaygroundState } from './playground-state.js'

/** A question and what to look at. */
export interface Example {
  readonly title: string
  readonly text: string
  readonly state: PlaygroundState
}

export const EXAMPLES: readonly Example[] = [
  {
    title: 'What does burst mean?',
    text: 'The same rate twice. Ten requests come at once every ten seconds: a burst of 10 takes them, a burst of 2 does not.',
    state: {
      first: { algorithm: 'token-bucket', limit: 10, window: '10s', burst: 10 },
      second: { algorithm: 'token-bucket', limit: 10, window: '10s', burst: 2 },
      demand: { source: 'bursts', rate: 1, size: 10, seconds: 60, seed: 1, clicks: [] },
    },
  },
  {
    title: 'The edge of a window',
    text: 'A fixed window admits its limit before and after the edge: twice as many in a moment. A sliding log never does.',
    state: {
      first: { algorithm: 'fixed-window', limit: 20, window: '10s', burst: 20 },
      second: { algorithm: 'sliding-log', limit: 20, window: '10s', burst: 20 },
      demand: { source: 'bursts', rate: 2.8, size: 20, seconds: 60, seed: 1, clicks: [] },
    },
  },
  {
    title: 'Evenly spaced',
    text: 'GCRA with a burst of 1 admits one request every 500 ms. A bucket of the same rate lets groups through.',
    state: {
      first: { algorithm: 'gcra', limit: 2, window: '1s', burst: 1 },
      second: { algorithm: 'token-bucket', limit: 2, window: '1s', burst: 8 },
      demand: { source: 'poisson', rate: 3, size: 8, seconds: 30, seed: 7, clicks: [] },
    },
  },
  {
    title: 'Ten times too many',
    text: 'However hard a client tries, the budget holds, and denied requests cost nothing: all of the rate is served.',
    state: {
      first: { algorithm: 'token-bucket', limit: 60, window: '1m', burst: 20 },
      second: undefined,
      demand: { source: 'poisson', rate: 10, size: 10, seconds: 120, seed: 3, clicks: [] },
    },
  },
  {
    title: 'Your own clicks',
    text: 'Press the button as fast as you like. Five at once, then one every two seconds.',
    state: {
      first: { algorithm: 'token-bucket', limit: 5, window: '10s', burst: 5 },
      second: undefined,
      demand: { source: 'clicks', rate: 2, size: 10, seconds: 30, seed: 1, clicks: [] },
    },
  },
]
