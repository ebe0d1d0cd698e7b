import type { Random } from '../random.js'

/** An address and one of the many ways to write it. */
export interface SpelledAddress {
  readonly text: string
  /** Sixteen; IPv4 as what it is mapped to. */
  readonly bytes: readonly number[]
}

export function spelledAddress(random: Random): SpelledAddress {
  const choice = random.integer(0, 9)
  if (choice < 3) return spelledIpv4(random)
  const groups = choice < 5 ? [0, 0, 0, 0, 0, 0xffff, word(random), word(random)] : Array.from({ length: 8 }, () => word(random))
  const zone = random.chance(0.1) ? `%${random.pick(['eth0', '1', 'en0.5', 'br-lan', 'wlan_0'])}` : ''
  return { text: spelledGroups(random, groups) + zone, bytes: groups.flatMap((group) => [group >> 8, group & 255]) }
}

/** The text with a character or two changed, added or taken away: an address still, or none. */
export function misspelt(random: Random, text: string): string {
  let changed = text
  for (let i = random.integer(1, 2); i > 0; i--) {
    const at = random.integer(0, changed.length)
    const unit = random.pick([...'0123456789abcfgxABF:::...[]/ \t\n"-_,;=\0\u0661\uff11\ud800'])
    changed = changed.slice(0, at) + (random.chance(0.3) ? '' : unit) + changed.slice(at + random.integer(0, 1))
  }
  return changed
}

function spelledIpv4(random: Random): SpelledAddress {
  const octets = Array.from({ length: 4 }, () => random.pick([0, 1, 9, 10, 99, 100, 127, 199, 200, 249, 250, 255, random.integer(0, 255)]))
  return { text: octets.join('.'), bytes: [...new Array<number>(10).fill(0), 255, 255, ...octets] }
}

function word(random: Random): number {
  return random.pick([0, 0, 0, 1, 0xf, 0x10, 0xff, 0x100, 0xfff, 0x1000, 0xffff, random.integer(0, 0xffff)])
}

function spelledGroups(random: Random, groups: readonly number[]): string {
  const digits = groups.map((group) => spelledGroup(random, group))
  const isDotted = random.chance(0.3)
  if (isDotted) {
    const tail = groups.slice(6).flatMap((group) => [group >> 8, group & 255])
    digits.splice(6, 2, tail.join('.'))
  }
  const most = isDotted ? 6 : 8
  const zeros = groups.flatMap((group, i) => (group === 0 && i < most ? [i] : []))
  if (zeros.length === 0 || random.chance(0.2)) return digits.join(':')
  const from = random.pick(zeros)
  let to = from + 1
  while (to < most && groups[to] === 0 && random.chance(0.8)) to++
  return `${digits.slice(0, from).join(':')}::${digits.slice(to).join(':')}`
}

function spelledGroup(random: Random, group: number): string {
  const digits = group.toString(16).padStart(random.pick([1, 1, 1, 4, random.integer(1, 4)]), '0')
  return random.chance(0.3) ? digits.toUpperCase() : digits
}
