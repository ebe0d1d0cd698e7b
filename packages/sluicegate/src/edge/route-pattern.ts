/** The pattern of a route as text: of several joined by commas, of a regular expression its source. Undefined where none matched. */
export function routePattern(path: unknown): string | undefined {
  if (typeof path === 'string') return path
  if (path instanceof RegExp) return path.source
  return Array.isArray(path) ? path.map(routePattern).join(',') : undefined
}
