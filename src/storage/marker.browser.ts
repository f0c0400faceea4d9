/**
 * The marker of a state in IndexedDB, in the local storage of the same origin, and the lock that keeps a second tab from the state.
 * `#marker` in `package.json`.
 */
import { markerText, parseMarker, StateInUseError } from './errors.js'

const keyOf = (directory: string) => `admb ${directory}`

/** The marker's content; undefined for a new state. @throws DamagedStateError */
export async function readMarker(directory: string): Promise<object | undefined> {
  const content = localStorage.getItem(keyOf(directory))
  return content === null ? undefined : parseMarker(directory, content)
}

export async function writeMarker(directory: string): Promise<void> {
  localStorage.setItem(keyOf(directory), markerText())
}

/** A database has nothing of others in it. */
export async function assertNew(_directory: string): Promise<void> {}

/**
 * Holds the state for this tab until the result is called. Pages without a secure context have no locks.
 * @throws StateInUseError
 */
export function lockState(directory: string): Promise<() => void> {
  if (navigator.locks === undefined) return Promise.resolve(() => undefined)
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(keyOf(directory), { ifAvailable: true }, lock => {
      if (lock === null) throw new StateInUseError(directory)
      return new Promise<void>(release => resolve(release))
    })
    held.catch(reject)
  })
}

/** Only training in one process writes layer files. */
export function hasLayers(_directory: string): boolean {
  return false
}
