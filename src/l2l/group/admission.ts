/** Admission of workers by a token. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { DeviceLine } from './messages.js'

/** How long a worker may take until it has sent the token, in ms. */
const TOKEN_MS = 10_000

/** Calls a handler with the first message of a worker, in which its token is right or not. In the latter case, the line is closed. */
export function awaitToken(line: DeviceLine, token: string, admitted: () => void, refused: () => void): void {
  const timer = setTimeout(() => line.close('no token arrived'), TOKEN_MS)
  line.receive({
    message(message) {
      clearTimeout(timer)
      if (message.kind === 'token' && isSame(String(message.token), token)) return admitted()
      refused()
      line.close('the token is another: give the file of the peer')
    },
    closed: () => clearTimeout(timer)
  })
}

/** Compares texts in a time that does not depend on their difference. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map(text => createHash('sha256').update(text).digest())
  return timingSafeEqual(a, b)
}
