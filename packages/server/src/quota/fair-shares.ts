/**
 * Splits `total` by max-min fairness: who wants less than an equal share gets it whole, and what they leave is split equally among the others. A
 * claim above the equal share gains nothing, so an absurd one harms no other.
 *
 * @returns one share for each of `wanted`, none above it.
 */
export function fairShares(wanted: readonly number[], total: number): number[] {
  const shares = new Array<number>(wanted.length).fill(0)
  const order = Array.from(wanted, (_, index) => index).sort((a, b) => (wanted[a] as number) - (wanted[b] as number))
  let left = total
  for (const [position, index] of order.entries()) {
    const share = Math.max(0, Math.min(wanted[index] as number, left / (order.length - position)))
    shares[index] = share
    left -= share
  }
  return shares
}
