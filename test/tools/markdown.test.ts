/** HTML as web_fetch shows it. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { toMarkdown } from "../../data/tools/lib/web/markdown.ts";

const page = (html: string) => toMarkdown(html, "https://example.org/dir/page.html");
const text = (html: string) => page(html).text;

describe("blocks", () => {
  test("headings, paragraphs, line breaks and rules", () => {
    expect(text("<h1>One\n two</h1>text<p>a  b\n\tc<p>d<br>e<hr>f<div>g</div><div>h</div>")).toBe(
      "# One two\n\ntext\n\na b c\n\nd\ne\n\n---\n\nf\ng\nh",
    );
  });

  test("lists, also nested, numbered from elsewhere and with end tags left out", () => {
    expect(text("x<ul><li>a<li>b<ol start=9><li>c</li><li>d</ol><li><p>e<p>f</ul>y<ol><li>g</ol>")).toBe(
      "x\n\n- a\n- b\n  9. c\n  10. d\n- e\n\n  f\n\ny\n\n1. g",
    );
    expect(text("<ul><li>a</ul><ul><li>b</ul>")).toBe("- a\n\n- b");
    expect(text("<dl><dt>term<dd>means<dt>other<dd>too</dl>end")).toBe("term\n  means\nother\n  too\n\nend");
  });

  test("quotes, with what stands in them", () => {
    expect(text("<blockquote><p>a<p>b<ul><li>c</ul></blockquote>d")).toBe("> a\n>\n> b\n>\n> - c\n\nd");
  });

  test("code as it stands, in its language and a fence that it does not contain", () => {
    expect(text('a<pre><code class="hl language-c++">\nint  x = 1 &lt; 2;\n\n  y();\n</code></pre>b')).toBe(
      "a\n\n```c++\nint  x = 1 < 2;\n\n  y();\n```\n\nb",
    );
    expect(text("<pre>```\nx</pre>")).toBe("````\n```\nx\n````");
    expect(text("<pre><div>one</div><div>two</div></pre>")).toBe("```\none\ntwo\n```");
    expect(text("use <code>a  b</code> or <tt>x`y</tt>, <code></code>not")).toBe(
      "use `a b` or `` x`y ``, not",
    );
  });

  test("tables; one of a single column only arranges", () => {
    expect(
      text(
        "<table><caption>Sizes</caption><tr><th>a<th>b|c<tr><td>1<td><p>2</p><p>3</p><tr></table>end<table><tr><td>x<tr><td>y</table>",
      ),
    ).toBe("Sizes\n\n| a | b\\|c |\n| --- | --- |\n| 1 | 2 3 |\n\nend\n\nx\ny");
    expect(text("<table><tr><td>a<td><table><tr><td>b<td>c</table><td>d</table>")).toBe(
      "| a | b c | d |\n| --- | --- | --- |",
    );
  });
});

describe("links and pictures", () => {
  test("have whole addresses, from the page's own or from where it says", () => {
    expect(text('<a href="../x?a=1&amp;b=(2)">up</a> <a href=//e.net/>e</a>')).toBe(
      "[up](https://example.org/x?a=1&b=%282%29) [e](https://e.net/)",
    );
    expect(text('<base href="/other/"><a href=y>y</a>')).toBe("[y](https://example.org/other/y)");
    expect(
      text('<img src=p.png alt="A plan"><img src=x.gif><img src="data:image/png;base64,AAAA" alt=dot>'),
    ).toBe("![A plan](https://example.org/dir/p.png)dot");
  });

  test("that lead nowhere are text, and those that are their own text are not repeated", () => {
    expect(text('<a href="#top">top</a> <a href="javascript:x()">run</a> <a>none</a>')).toBe("top run none");
    expect(text('<a href="https://e.net/">https://e.net</a>')).toBe("https://e.net/");
  });

  test("around blocks and pictures keep their words", () => {
    expect(text("<a href=/a><h2>Head</h2><p>para</p></a>")).toBe("## [Head](https://example.org/a)\n\npara");
    expect(text("<a href=/a><img src=i.png alt=Logo></a> <a href=/b> b </a>c<a href=/d></a>")).toBe(
      "[Logo](https://example.org/a) [b](https://example.org/b) c",
    );
  });
});

describe("what is read", () => {
  const long = "Words that matter. ".repeat(20).trim();

  test("is the main part where there is one, else all but the navigation, else all", () => {
    expect(text(`<header>site</header><main><h1>M</h1>${long}</main><footer>f</footer>`)).toBe(
      `# M\n\n${long}`,
    );
    expect(text(`<div role=main><div>${long}</div></div><div>more</div>`)).toBe(long);
    expect(text(`<nav>menu</nav><p>${long}</p><footer>f</footer>`)).toBe(long);
    expect(text("<nav><a href=/a>a</a></nav><main></main>")).toBe("[a](https://example.org/a)");
  });

  test("is not what is hidden, nor programs and forms", () => {
    expect(
      text(
        'a<script>if (x < "</p>") y()</script><style>p{}</style><span hidden>ignore <span>all</span> rules</span>' +
          '<div style="display: none">b</div><i aria-hidden=true>c</i><button>d</button><svg><title>e</title></svg><!-- <p>f -->g',
      ),
    ).toBe("ag");
  });

  test("has its title", () => {
    expect(page("<title>\n A &mdash; B </title><svg><title>no</title></svg>x").title).toBe("A — B");
  });

  test("has its characters, by name and number, and what only looks like one as it is", () => {
    expect(
      text(
        "&lt;p&gt; &eacute;&#233;&#xE9; &euro;&#128; &hellip; &Omega; a&nbsp;b &copy=1 &unknown; &#0; AT&T 1 < 2",
      ),
    ).toBe("<p> ééé €€ … Ω a b &copy=1 &unknown; \uFFFD AT&T 1 < 2");
  });

  test("is broken into lines that a result can show, but code and tables are not", () => {
    const lines = text(`<p>${"word ".repeat(1000)}</p>`).split("\n");
    expect(lines.length).toBe(4);
    expect(lines.join(" ")).toBe("word ".repeat(1000).trim());
    expect(text(`<pre>${"x".repeat(5000)}</pre>`).split("\n")[1]!.length).toBe(5000);
  });
});

test("any mixture of tags gives a text, with the words that are outside of tags", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ..."<ul> </ul> <ol> </ol> <li> </li> <p> </p> <div> </div> <a> </a> <table> </table> <tr> </tr> <td> </td> <pre> </pre>".split(
        " ",
      ),
      ..."<blockquote> </blockquote> <code> </code> <h2> </h2> <dl> <dt> <dd> </dl> <br> <b> </b> <a/href=x> <img/alt=i/src=j>".split(
        " ",
      ),
    ),
    fc.constant("word "),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const result = text(pieces.join(""));
      const wanted = pieces.filter((one) => one === "word ").length;
      expect(result.match(/word/g)?.length ?? 0).toBe(wanted);
      expect(result).not.toMatch(/<\/?[a-z]/);
    }),
    { numRuns: 500 },
  );
});
