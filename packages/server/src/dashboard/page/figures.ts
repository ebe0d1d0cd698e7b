const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })

/** A number of things. */
export function count(value: number): string {
  return whole.format(value)
}

/** A number a second: one decimal while it is small. */
export function rate(value: number): string {
  return (value < 100 ? fine : whole).format(value)
}
