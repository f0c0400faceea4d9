/**
 * How much TensorFlow's library says on standard error. It asks the C library for its switch, and a worker thread's `process.env`
 * is a copy of which that does not know.
 */

const SWITCH = 'TF_CPP_MIN_LOG_LEVEL'
/** Warnings and what is below are left out. */
const LEVEL = '2'

/** Sets the switch, before the library is loaded, unless the user has set it. */
export async function setLogLevel(): Promise<void> {
  if (process.env[SWITCH] !== undefined) return
  process.env[SWITCH] = LEVEL
  if (process.platform === 'win32') return
  try {
    const koffi = (await import('koffi')).default
    koffi.load(null).func('int setenv(const char *, const char *, int)')(SWITCH, LEVEL, 0)
  } catch {
    // Without the optional package koffi a worker's library says a little more.
  }
}
