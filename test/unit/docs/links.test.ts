/** What the documents lead to: a page, a file or a heading that is not there sends a reader nowhere. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, normalize } from 'node:path'
import { pages, prose, read } from '../../support/documents.js'

/** A heading's anchor, as GitHub makes it. */
function anchor(heading: string): string {
  const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
  return text.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')
}

function anchors(page: string): Set<string> {
  return new Set([...prose(page).matchAll(/^#+ +(.+?) *$/gm)].map(match => anchor(match[1])))
}

/** What is wrong with a link of a page; undefined for nothing. */
function fault(page: string, link: string): string | undefined {
  const [path, fragment] = link.split('#')
  const target = path === '' ? page : normalize(`${dirname(page)}/${path}`)
  if (!existsSync(target)) return `${page}: ${link} leads to nothing`
  if (fragment === undefined || !target.endsWith('.md') || anchors(target).has(fragment)) return undefined
  return `${page}: ${link} names no heading of ${target}`
}

describe('the documents', () => {
  it('link to files and headings that exist', () => {
    const links = pages().flatMap(page =>
      [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map(match => [page, match[1]] as const)
    )
    const relative = links.filter(([, link]) => !/^[a-z]+:/.test(link))
    assert.ok(relative.length > 50, `${relative.length} links`)
    assert.deepEqual(
      relative.map(([page, link]) => fault(page, link)).filter(found => found !== undefined),
      []
    )
  })

  it('are all linked from the README', () => {
    const missing = pages().filter(page => page.startsWith('docs/') && !prose('README.md').includes(`(${page})`))
    assert.deepEqual(missing, [])
  })

  it('give every package a reason', () => {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = JSON.parse(
      readFileSync('package.json', 'utf8')
    ) as Record<string, Record<string, string>>
    const packages = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies })
    const table = read('docs/packages.md')
    assert.deepEqual(
      packages.filter(name => !table.includes(`\`${name}\``)),
      []
    )
  })

  it('have a picture that a page loads quickly', () => {
    assert.ok(statSync('docs/images/page.png').size < 200_000)
  })
})
