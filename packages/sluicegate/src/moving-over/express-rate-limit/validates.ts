/** What express-rate-limit looks for at run time and is looked for here too, by its names. */
export type Validation = 'trustProxy' | 'xForwardedForHeader' | 'keyGeneratorIpFallback'

/** Whether the option `validate` leaves a check on: true or nothing for all, false for none, or an object that says it of each. */
export function validates(validate: unknown, name: Validation): boolean {
  if (typeof validate !== 'object' || validate === null) return validate !== false
  const { [name]: own, default: others = true } = validate as Readonly<Record<string, unknown>>
  return Boolean(own ?? others)
}
