/** The recipes of a page: files to add, edits of files and commands to run, as the page shows them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Block {
  readonly kind: 'file' | 'edit' | 'run'
  /** Path of the file, or name of the recipe whose commands these are. */
  readonly target: string
  readonly text: string
}

/** Blocks marked `<!-- file PATH -->`, `<!-- edit PATH -->` or `<!-- run NAME -->`, in order. They may be indented. */
export function recipeBlocks(page: string): Block[] {
  const pattern = /^( *)<!-- (file|edit|run) (\S+) -->\n+ *```\w*\n(.*?)^ *```/gms
  return [...page.matchAll(pattern)].map(([, indent, kind, target, text]) => ({
    kind: kind as Block['kind'],
    target,
    text: text.replaceAll(new RegExp(`^ {0,${indent.length}}`, 'gm'), '')
  }))
}

/**
 * Applies a block of kind `file` or `edit` to the sources below `root`.
 * @throws Error if a hunk of an edit does not match exactly once
 */
export function applyBlock({ kind, target, text }: Block, root: string): void {
  const path = join(root, target)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, kind === 'file' ? text : applyEdit(readFileSync(path, 'utf8'), text, target))
}

/** @param diff hunks of context, `-` and `+` lines, separated by `@@` */
function applyEdit(source: string, diff: string, path: string): string {
  let edited = source
  for (const hunk of diff.split(/^@@.*\n/m)) {
    const lines = hunk.split('\n').filter(line => line !== '')
    const without = (sign: string) =>
      lines
        .filter(line => !line.startsWith(sign))
        .map(line => `${line.slice(1)}\n`)
        .join('')
    const [before, after] = [without('+'), without('-')]
    const matches = edited.split(before).length - 1
    if (matches !== 1) throw new Error(`${path}: ${matches} places match the hunk\n${before}`)
    edited = edited.replace(before, () => after)
  }
  return edited
}
