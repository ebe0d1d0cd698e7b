import type { History, Sample } from '../sample.js'

/** The page's handlers of events. */
export interface FeedReader {
  history(history: History): void
  sample(sample: Sample): void
  state(state: 'live' | 'lost'): void
}

const RETRY_MS = 5_000

/** Reads the service's events for as long as the page is open. */
export function readFeed(reader: FeedReader): void {
  const source = new EventSource('/events')
  source.addEventListener('history', (event) => {
    reader.history(JSON.parse(event.data))
    reader.state('live')
  })
  source.addEventListener('message', (event) => reader.sample(JSON.parse(event.data)))
  source.addEventListener('error', () => {
    reader.state('lost')
    // The browser reconnects by itself after a lost connection, not after a refusal.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => readFeed(reader), RETRY_MS)
  })
}
