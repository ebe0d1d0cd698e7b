import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'

/** What is published on a channel while `act` runs, and what that returned. */
export async function eventsDuring<Event, Answer>(
  channel: string,
  act: () => Awaitable<readonly Answer[]>,
): Promise<readonly [readonly Event[], readonly Answer[]]> {
  const events: Event[] = []
  const hear = (event: unknown): void => void events.push(event as Event)
  subscribe(channel, hear)
  try {
    return [events, await act()]
  } finally {
    unsubscribe(channel, hear)
  }
}
