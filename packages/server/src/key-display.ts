import { createHmac, randomBytes } from 'node:crypto'
import type { KeyDisplay } from 'sluicegate-config/config.js'

const MAX_SHOWN = 80
/** Characters that would hide, break or turn around what stands beside them. */
const UNPRINTABLE = /[\p{Control}\p{Format}\p{Surrogate}\p{Line_Separator}\p{Paragraph_Separator}]/gu

/**
 * How keys appear on the page. Masked, a key is a pseudonym: the same one for as long as the service runs, so that it can
 * be followed, and no way back, since the secret behind it is random and never leaves the process.
 */
export function keyDisplay(mode: KeyDisplay): (key: string) => string {
  return mode === 'shown' ? printable : pseudonyms()
}

function pseudonyms(): (key: string) => string {
  const secret = randomBytes(32)
  return (key) => {
    // UTF-16, so that two keys with different halves of a surrogate pair stay two.
    const digest = createHmac('sha256', secret).update(Buffer.from(key, 'utf16le')).digest('hex')
    return `${digest.slice(0, 4)}-${digest.slice(4, 8)}-${digest.slice(8, 12)}`
  }
}

/** Text for people: unprintable characters by their number, long keys cut. */
function printable(key: string): string {
  const characters = Array.from(key.slice(0, 2 * MAX_SHOWN))
  const shown = characters.slice(0, MAX_SHOWN).join('')
  const cut = shown.length < key.length ? '…' : ''
  return shown.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`) + cut
}
