//! Answers of servers, and what is none.

use super::*;

const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>b</Name><KeyCount>3</KeyCount><IsTruncated>true</IsTruncated>
  <Contents><Key>a%2Bb+c%0A</Key><LastModified>2026-11-26T09:43:51.123Z</LastModified>
    <ETag>&quot;d41d8&quot;</ETag><Size>12</Size><StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>d/</Key><Size>0</Size></Contents>
  <CommonPrefixes><Prefix>%C3%A4/</Prefix></CommonPrefixes>
  <EncodingType>url</EncodingType>
  <NextContinuationToken>t/1=</NextContinuationToken>
</ListBucketResult>"#;

#[test]
fn a_page_of_a_listing_is_read() {
    let read = listing(PAGE).unwrap();
    let first = &read.objects[0];
    assert_eq!((first.key.as_str(), first.size), ("a+b c\n", 12));
    assert_eq!(first.e_tag.as_deref(), Some("\"d41d8\""));
    assert_eq!(first.written, Time { secs: 1_795_686_231, nanos: 0 });
    assert_eq!((read.objects[1].key.as_str(), read.objects.len()), ("d/", 2));
    assert_eq!(read.prefixes, ["ä/"]);
    assert_eq!(read.next.as_deref(), Some("t/1="));
    // Without a word about an encoding a key is what it is.
    let plain = listing(&PAGE.replace("<EncodingType>url</EncodingType>", "")).unwrap();
    assert_eq!(plain.objects[0].key, "a%2Bb+c%0A");
}

#[test]
fn what_is_no_listing_is_refused() {
    for text in [
        "",
        "<html><body>Welcome</body></html>",
        "<ListBucketResult><Contents>",
        "<ListBucketResult><Contents><Size>many</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>&bomb;</Key></Contents></ListBucketResult>",
        &PAGE.replace("%0A", "%0"),
        &PAGE.replace("%0A", "%FF"),
        &format!("{}{}", "<a>".repeat(100), "</a>".repeat(100)),
    ] {
        assert_eq!(listing(text), Err(BadReply), "{text}");
    }
}

#[test]
fn an_error_in_an_answer_of_success_is_one() {
    let error = "<Error><Code>InternalError</Code><Message>We &amp; you</Message></Error>";
    assert_eq!(completed(error), Err(BadReply));
    let told = refusal(error);
    assert_eq!((told.code.as_str(), told.message.as_str()), ("InternalError", "We & you"));
    assert_eq!(refusal("<html>502</html>"), Refusal::default());
    let done =
        "<CompleteMultipartUploadResult><ETag>\"x-2\"</ETag></CompleteMultipartUploadResult>";
    assert_eq!(completed(done).as_deref(), Ok("\"x-2\""));
    let begun = "<InitiateMultipartUpload><UploadId>u</UploadId></InitiateMultipartUpload>";
    assert_eq!(upload_id(begun).as_deref(), Ok("u"));
    assert_eq!(upload_id(done), Err(BadReply));
}

#[test]
fn times_and_ranges_of_headers_are_read() {
    let time = |secs, nanos| Some(Time { secs, nanos });
    assert_eq!(mtime("1234567890.98765"), time(1_234_567_890, 987_650_000));
    assert_eq!(mtime("1234567890"), time(1_234_567_890, 0));
    assert_eq!(mtime("-5.25"), time(-6, 750_000_000));
    assert_eq!(mtime_text(Time { secs: -6, nanos: 750_000_000 }), "-5.250000000");
    assert_eq!((mtime("x"), mtime("1.-5"), mtime("")), (None, None, None));
    for (text, secs) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T23:59:59.999Z", 951_868_799),
        ("2026-11-26T09:43:51.123Z", 1_795_686_231),
    ] {
        assert_eq!(timestamp(text), time(secs, 0), "{text}");
    }
    for text in
        ["", "2026-11-26", "2026-13-26T09:43:51Z", "2026-11-26T09:43:51", "2026-11-26T9:x:1Z"]
    {
        assert_eq!(timestamp(text), None, "{text}");
    }
    assert_eq!(http_date("Thu, 26 Nov 2026 09:43:51 GMT"), time(1_795_686_231, 0));
    assert_eq!(content_range("bytes 5-9/10"), Some((5..10, 10)));
    for text in ["bytes 5-10/10", "bytes 9-5/10", "bytes */10", "5-9/10", "bytes 5-9/*"] {
        assert_eq!(content_range(text), None, "{text}");
    }
}
