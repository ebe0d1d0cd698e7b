/** Other processes of the same service: what clients hold may be in any of them. Ids begin with the slot of the process that made them. */
export interface Peers {
  /** Of this process, from 0 to 255. */
  readonly slot: number
  /** Calls a method of the process in a slot; undefined when there is none. */
  call<Value>(slot: number, verb: HeldVerb, id: string, costs?: readonly number[]): Promise<Value | undefined>
}

export type HeldVerb = 'release' | 'heartbeat' | 'parts' | 'settle' | 'cancel'

const HEX_DIGITS = 2

/** The id with the slot as its first byte. */
export function idOfSlot(id: string, slot: number): string {
  return slot.toString(16).padStart(HEX_DIGITS, '0') + id.slice(HEX_DIGITS)
}

/** The slot of another process that made this id; undefined when it is this one's own, or no id of the service. */
export function otherSlotOf(id: string, { slot }: Peers): number | undefined {
  const made = /^[0-9a-f]{2}/.test(id) ? Number.parseInt(id.slice(0, HEX_DIGITS), 16) : slot
  return made === slot ? undefined : made
}
