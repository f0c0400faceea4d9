/** Time limits of actions that a signal can abort. */

/**
 * Runs an action with a time limit. `AbortSignal.any` with `AbortSignal.timeout` is no such limit: Node.js 20 forgets the timeout when it
 * collects memory.
 * @param signals others that abort the action
 * @throws Error of the action, for example the reason of the signal that it is given
 */
export async function withTimeLimit<Result>(
  ms: number,
  signals: readonly AbortSignal[],
  action: (signal: AbortSignal) => Promise<Result>
): Promise<Result> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`it took longer than ${ms / 1000} s`)), ms)
  try {
    return await action(AbortSignal.any([...signals, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}
