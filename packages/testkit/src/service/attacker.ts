import { ATTACKS, type Attack, type AttackOrder, type AttackReport } from './hostile-attacks.js'

// A process that attacks a service on loopback: it begins what the first message names, and reports at the second.

let attack: Attack | undefined

process.on('message', (order: AttackOrder | 'end') => void obey(order))
process.on('disconnect', () => process.exit(0))

async function obey(order: AttackOrder | 'end'): Promise<void> {
  if (order !== 'end') attack = await ATTACKS[order.name]?.(order.ports, order.scale)
  const report: AttackReport = { count: attack?.count ?? 0, closed: attack?.closed() ?? 0 }
  process.send?.(report)
}
