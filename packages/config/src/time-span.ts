const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORM = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/

/** The milliseconds of a text such as `250ms`, `5s`, `1.5m`, `1h` or `30d`; undefined for any other. */
export function timeSpanMs(text: string): number | undefined {
  const [, number, unit = ''] = FORM.exec(text) ?? []
  return number === undefined ? undefined : Math.round(Number(number) * (MS_PER_UNIT[unit] as number))
}

/** The shortest exact way to write `ms`: 60000 is `1m`. */
export function timeSpanText(ms: number): string {
  const unit = ['h', 'm', 's'].find((each) => ms > 0 && ms % (MS_PER_UNIT[each] as number) === 0) ?? 'ms'
  return `${ms / (MS_PER_UNIT[unit] as number)}${unit}`
}
