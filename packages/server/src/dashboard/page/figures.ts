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

const tiny = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 })

/** Time in microseconds, in the unit that needs the fewest digits. */
export function time(us: number): string {
  if (us < 1) return `${tiny.format(us * 1000)} ns`
  return us < 1000 ? `${tiny.format(us)} µs` : `${tiny.format(us / 1000)} ms`
}

/** Memory. */
export function bytes(value: number): string {
  return value < 1_048_576 ? `${tiny.format(value / 1024)} KiB` : `${tiny.format(value / 1_048_576)} MiB`
}

/** A time span for people: 4.2 s, 12 min, 3.5 h. */
export function span(ms: number): string {
  if (ms < 1000) return `${whole.format(ms)} ms`
  if (ms < 60_000) return `${fine.format(ms / 1000)} s`
  if (ms < 3_600_000) return `${fine.format(ms / 60_000)} min`
  return ms < 86_400_000 ? `${fine.format(ms / 3_600_000)} h` : `${fine.format(ms / 86_400_000)} d`
}

/** The element of the page with that id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element
}

/** A new element. Content is text or elements, never markup: names and keys are untrusted. */
export function made(tag: string, className: string, ...content: (Node | string)[]): HTMLElement {
  const element = document.createElement(tag)
  if (className !== '') element.className = className
  element.append(...content)
  return element
}
