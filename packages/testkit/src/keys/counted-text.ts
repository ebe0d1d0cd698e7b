/** As much of a string as address readers use; it counts how often they look. */
export class CountedText {
  looks = 0
  readonly length: number
  readonly #text: string

  constructor(text: string) {
    this.#text = text
    this.length = text.length
  }

  charCodeAt(i: number): number {
    this.looks++
    return this.#text.charCodeAt(i)
  }
}
