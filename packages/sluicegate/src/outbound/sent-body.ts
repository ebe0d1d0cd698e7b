type Made = new (from?: unknown) => unknown

/** What fetch reads anew each time; a stream, or whatever else it takes as one, only once. Of any make: by what it calls itself. */
export function isRepeatable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string' || ArrayBuffer.isView(body)) return true
  return ['ArrayBuffer', 'URLSearchParams', 'Blob', 'File'].includes(kindOf(body)) || isForm(body)
}

/** What can be changed while a request waits, as it is now; all else is itself. */
export function copiedBody(body: unknown): unknown {
  // Of a Buffer its own `slice` would be no copy.
  if (ArrayBuffer.isView(body)) return body instanceof DataView ? new DataView(bytesOf(body)) : Uint8Array.prototype.slice.call(body)
  if (isForm(body)) {
    const form = new (body.constructor as Made)() as FormData
    for (const [name, value] of body) form.append(name, value)
    return form
  }
  if (kindOf(body) === 'ArrayBuffer') return (body as ArrayBuffer).slice(0)
  return kindOf(body) === 'URLSearchParams' ? new ((body as object).constructor as Made)(body) : body
}

export function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

function bytesOf({ buffer, byteOffset, byteLength }: DataView): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
}

/** There are forms that are streams. */
function isForm(body: unknown): body is FormData {
  return kindOf(body) === 'FormData' && !('pipe' in (body as object))
}
