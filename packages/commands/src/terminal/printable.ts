/** What would command a terminal, or hide and turn around what stands beside it. */
const UNPRINTABLE = /[\p{Control}\p{Format}\p{Surrogate}\p{Line_Separator}\p{Paragraph_Separator}]/gu
const BETWEEN_LINES = /[\r\n]+/

/** Text of others, such as keys and answers of a server, on one line of a terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '?')
}

/** The same with its lines. */
export function printableLines(text: string): string {
  return text.split(BETWEEN_LINES).map(printable).join('\n')
}

/** A value as one line of JSON, in which nothing commands a terminal. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped)
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')
}
