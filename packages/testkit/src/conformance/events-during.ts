import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** What is published on a channel while `act` runs, and what that returned. */
export function eventsDuring<Event, Answer>(channel: string, act: () => readonly Answer[]): readonly [readonly Event[], readonly Answer[]] {
  const events: Event[] = []
  const hear = (event: unknown): void => void events.push(event as Event)
  subscribe(channel, hear)
  try {
    return [events, act()]
  } finally {
    unsubscribe(channel, hear)
  }
}
