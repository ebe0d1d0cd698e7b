/** Results as JSON with a line for each field, and for each item of a list of objects, so that a change reads well in a diff. */
export function oneEachLine(fields: object): string {
  const lines = Object.entries(fields).map(([name, value]) => {
    const isList = Array.isArray(value) && value.some((each) => typeof each === 'object')
    const text = isList ? `[\n${value.map((item) => `  ${JSON.stringify(item)}`).join(',\n')}\n ]` : JSON.stringify(value)
    return ` ${JSON.stringify(name)}: ${text}`
  })
  return `{\n${lines.join(',\n')}\n}\n`
}
