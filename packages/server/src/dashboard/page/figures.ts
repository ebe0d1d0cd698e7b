const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })

/** Steps of an axis are quarters at the finest: 0.25, 1.25K. Fewer digits would put a wrong number beside the line. */
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 2 })

/** A number of things. */
export function count(value: number): string {
  return whole.format(value)
}

/** A label of an axis. */
export function amount(value: number): string {
  return short.format(value)
}

/** A number a second: one decimal while it is small. */
export function rate(value: number): string {
  return (value < 100 ? fine : whole).format(value)
}
