/** Folders that are made, and YAML that is read. */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those that it is in, unless they exist. `mkdir` with `recursive` reports a read-only file system as a missing
 * folder, and does not return where the system refuses new folders, as in /proc.
 * @throws the system's error
 */
export function makeFolder(path: string): void {
  const missing: string[] = []
  for (let folder = resolve(path); !existsSync(folder); folder = dirname(folder)) missing.unshift(folder)
  for (const folder of missing) {
    try {
      mkdirSync(folder)
    } catch (error) {
      if (!isFolder(folder)) throw error
    }
  }
  // Reports a file at the path.
  if (!isFolder(path)) mkdirSync(path)
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** @throws Error with a message of several lines, if the text is not YAML */
export function parseYaml(text: string): unknown {
  return (createRequire(import.meta.url)('yaml') as typeof import('yaml')).parse(text)
}
